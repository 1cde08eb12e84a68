package archive

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
)

// remote is a store that is reached over TLS through a proxy on which things go wrong.
type remote struct {
	handler http.Handler
	proxy   *proxy
	url     string
	keys    map[string]string
	// refused and undigested are how many bodies the store has refused because of their digest, and how many had none.
	refused, undigested func() int
}

// remotes are the stores that are reached by HTTP, each with stand-ins of its own.
func remotes() map[string]func(*testing.T) *remote {
	likeS3 := func(ignoresMD5 bool) func(t *testing.T) *remote {
		return func(t *testing.T) *remote {
			t.Helper()
			fake := newFakeS3()
			fake.ignoresMD5 = ignoresMD5
			keys := map[string]string{keyAccess: "someone", keySecret: "a secret of the test"}
			return newRemote(t, fake, "s3://backups/%s?region=r&use_path_style=true&endpoint=%s", keys).counting(&fake.refused, &fake.undigested)
		}
	}
	return map[string]func(*testing.T) *remote{
		"s3": likeS3(false), "s3 without MD5": likeS3(true),
		"gs": func(t *testing.T) *remote {
			t.Helper()
			fake := newFakeS3()
			issuer := httptest.NewServer(http.HandlerFunc(issueToken))
			t.Cleanup(issuer.Close)
			keys := map[string]string{keyServiceAccount: serviceAccountKey(t, issuer.URL)}
			return newRemote(t, demandToken(fake), "gs://backups/%s?endpoint=%s", keys).counting(&fake.refused, &fake.undigested)
		},
		"azblob": func(t *testing.T) *remote {
			t.Helper()
			fake := &fakeAzure{blobs: map[string][]byte{}, blocks: map[string][]byte{}, authorized: "SharedKey account:"}
			keys := map[string]string{keyAccount: "account", keyAccountKey: base64.StdEncoding.EncodeToString([]byte("a key of the test"))}
			return newRemote(t, fake, "azblob://backups/%s?endpoint=%s", keys).counting(&fake.refused, &fake.undigested)
		},
	}
}

func newRemote(t *testing.T, handler http.Handler, url string, keys map[string]string) *remote {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	through := newProxy(t, server.URL, httptest.NewTLSServer, nil)
	keys = maps.Clone(keys)
	keys["ca.crt"] = string(pemOf(through.server.Certificate().Raw))
	return &remote{handler: handler, proxy: through, url: url, keys: keys}
}

func (r *remote) counting(refused, undigested *int) *remote {
	r.refused, r.undigested = func() int { return *refused }, func() int { return *undigested }
	return r
}

// store is a folder of the remote. Pieces are small, so that what is stored in several is small, too.
func (r *remote) store(t *testing.T, folder string) *Store {
	t.Helper()
	small := impatient()
	small.piece = 400 << 10
	return openedWith(t, Location{URL: fmt.Sprintf(r.url, folder, r.proxy.server.URL), CredentialsDir: secretDir(t, r.keys)}, small)
}

// remoteSize makes parts of several pieces, and parts of one.
const remoteSize = 300 << 10

func severalPieces() WriteOptions { return WriteOptions{PartSize: 200 << 10} }

// One bit that flips on the way to the store, in any request, is noticed there, and what it was in is sent again.
func TestAFlippedBitIsSentAgain(t *testing.T) {
	t.Parallel()
	for scheme, start := range remotes() {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			remote := start(t)
			for number := 0; ; number++ {
				store := remote.store(t, fmt.Sprint("folder-", number))
				remote.proxy.breakAt(faultGarbled, number, number+1)
				if _, err := backUp(t.Context(), store, severalPieces(), remoteSize, tree{}); err != nil {
					t.Fatalf("a bit flipped in request %d: %v", number, err)
				}
				sent := remote.proxy.requests()
				remote.proxy.breakAt("", 0, 0)
				if err := readWhole(t, store, ReadOptions{}); err != nil {
					t.Fatalf("a bit flipped in request %d, and the backup is complete all the same: %v", number, err)
				}
				if sent <= number {
					break
				}
			}
			// The marker, two pieces of a part, a part that is one piece, and the manifest.
			if refused := remote.refused(); refused < 5 {
				t.Errorf("only %d requests were refused because of their digest", refused)
			}
			if undigested := remote.undigested(); undigested > 0 {
				t.Errorf("%d requests had no digest", undigested)
			}
		})
	}
}

// Where bits flip all the time, no backup is ever complete.
func TestFlippingBitsNeverMakeABackup(t *testing.T) {
	t.Parallel()
	for scheme, start := range remotes() {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			remote := start(t)
			for number := 0; ; number++ {
				store := remote.store(t, fmt.Sprint("folder-", number))
				remote.proxy.breakAt(faultGarbledList, number, 1<<30)
				_, err := backUp(t.Context(), store, severalPieces(), remoteSize, tree{})
				sent := remote.proxy.requests()
				remote.proxy.breakAt("", 0, 0)
				_, _, missing := Load(t.Context(), store)
				if err != nil && missing == nil {
					t.Fatalf("bits flip from request %d on: %v, and the backup is complete", number, err)
				}
				if err == nil {
					if err := readWhole(t, store, ReadOptions{}); err != nil {
						t.Fatalf("bits flip from request %d on, and the backup is complete all the same: %v", number, err)
					}
				}
				if sent <= number {
					return
				}
			}
		})
	}
}
