package archive

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// remote is a store that is reached over TLS through a proxy that causes faults.
type remote struct {
	handler http.Handler
	proxy   *proxy
	url     string
	keys    map[string]string
	// refused and undigested return how many bodies the store refused because of their digest, and how many had none.
	refused, undigested func() int
	// retries200: an error with the status of success is retried. Azure's status for success is 201, and the SDK does not retry.
	retries200 bool
}

// remotes returns the stores that are reached by HTTP, each with a fake server.
func remotes() map[string]func(*testing.T) *remote {
	likeS3 := func(ignoresMD5 bool) func(t *testing.T) *remote {
		return func(t *testing.T) *remote {
			t.Helper()
			fake := newFakeS3()
			fake.ignoresMD5 = ignoresMD5
			keys := map[string]string{destination.KeyAccess: "someone", destination.KeySecret: "a secret of the test"}
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
			keys := map[string]string{destination.KeyServiceAccount: serviceAccountKey(t, issuer.URL)}
			return newRemote(t, demandToken(fake), "gs://backups/%s?endpoint=%s", keys).counting(&fake.refused, &fake.undigested)
		},
		"azblob": func(t *testing.T) *remote {
			t.Helper()
			fake := &fakeAzure{blobs: map[string][]byte{}, blocks: map[string][]byte{}, authorized: "SharedKey account:"}
			keys := map[string]string{destination.KeyAccount: "account", destination.KeyAccountKey: base64.StdEncoding.EncodeToString([]byte("a key of the test"))}
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
	keys["ca.crt"], keys[destination.KeyEndpoint] = string(pemOf(through.server.Certificate().Raw)), through.server.URL
	return &remote{handler: handler, proxy: through, url: url, keys: keys, retries200: !strings.HasPrefix(url, "azblob:")}
}

func (r *remote) counting(refused, undigested *int) *remote {
	r.refused, r.undigested = func() int { return *refused }, func() int { return *undigested }
	return r
}

// store opens a folder of the remote. Pieces are small, so that small objects have several.
func (r *remote) store(t *testing.T, folder string) *Store {
	t.Helper()
	small := testTuning()
	small.piece = remotePiece
	return openedWith(t, Location{URL: fmt.Sprintf(r.url, folder, r.proxy.server.URL), CredentialsDir: secretDir(t, r.keys)}, small)
}

const (
	// remoteSize gives parts with several pieces, and parts with one.
	remoteSize = 300 << 10
	// remotePiece is the size of pieces. fakeS3 accepts no smaller piece except the last, as Amazon's S3 accepts none under 5 MiB.
	remotePiece = 400 << 10
)

func severalPieces() WriteOptions { return WriteOptions{PartSize: 200 << 10} }

// If one bit of any request flips on the way, the store refuses the request, and it is sent again.
func TestAFlippedBitIsSentAgain(t *testing.T) {
	t.Parallel()
	for scheme, start := range remotes() {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			remote := start(t)
			for number := 0; ; number += requestStride {
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
			if refused := remote.refused(); requestStride == 1 && refused < 5 {
				t.Errorf("only %d requests were refused because of their digest", refused)
			}
			if undigested := remote.undigested(); undigested > 0 {
				t.Errorf("%d requests had no digest", undigested)
			}
		})
	}
}

// badDays returns further problems of a store, in addition to faults, and for how many requests each lasts.
func badDays() map[fault]int {
	const forGood = 1 << 30
	return map[fault]int{faultGarbledList: 1, faultHalved: 1, faultErrorIn200: 1, faultPage: forGood, faultEmpty: forGood, faultRedirected: forGood}
}

// For every problem of a store, from any request on: a backup that is reported as complete is intact. Google is left out, because it
// differs from S3 only in authentication.
func TestCompleteBackupsAreIntactDespiteFaults(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"s3", "azblob"} {
		for day, lasts := range badDays() {
			t.Run(scheme+" "+string(day), func(t *testing.T) {
				t.Parallel()
				badDay(t, remotes()[scheme](t), day, lasts)
			})
		}
	}
}

func badDay(t *testing.T, remote *remote, day fault, lasts int) {
	t.Helper()
	stranger := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("followed to %s %s", r.Method, r.URL) }))
	t.Cleanup(stranger.Close)
	remote.proxy.elsewhere = stranger.URL
	for number := 0; ; number += requestStride {
		store := remote.store(t, fmt.Sprint("folder-", number))
		remote.proxy.breakAt(day, number, number+lasts)
		_, err := backUp(t.Context(), store, severalPieces(), remoteSize, tree{})
		sent := remote.proxy.requests()
		remote.proxy.breakAt("", 0, 0)
		whole := readWhole(t, store, ReadOptions{})
		if err == nil && whole != nil {
			t.Fatalf("%s at request %d (%s): the backup is complete, and %v", day, number, remote.proxy.lastBroken(), whole)
		}
		if told, ok := errors.AsType[*destination.StoreError](err); day == faultRedirected && err != nil && (!ok || told.Kind != destination.KindRedirected) {
			t.Fatalf("%s at request %d: %v", day, number, err)
		}
		if day == faultErrorIn200 && remote.retries200 && remote.proxy.lastBroken() != http.MethodGet && err != nil {
			t.Errorf("%s at request %d (%s) is not tried again: %v", day, number, remote.proxy.lastBroken(), err)
		}
		if sent <= number {
			return
		}
	}
}

// The answer of another server is never taken for an empty folder: otherwise another owner's folder would be written to, or data would be
// left that is reported as deleted.
func TestAFolderIsNotEmptyBecauseSomethingElseAnswers(t *testing.T) {
	t.Parallel()
	for scheme, start := range remotes() {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			remote := start(t)
			store := remote.store(t, "folder")
			if _, err := backUp(t.Context(), store, severalPieces(), remoteSize, tree{}); err != nil {
				t.Fatal(err)
			}
			for _, day := range []fault{faultErrorIn200, faultPage, faultEmpty, faultRedirected} {
				remote.proxy.elsewhere = "https://store.example"
				remote.proxy.breakAt(day, 0, 1<<30)
				if objects, err := store.list(t.Context()); err == nil {
					t.Errorf("%s: it lists %v", day, objects)
				}
				if err := Remove(t.Context(), store, owner("nightly")); err == nil {
					t.Errorf("%s: it is reported as deleted", day)
				}
			}
			remote.proxy.breakAt("", 0, 0)
			if err := readWhole(t, store, ReadOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}
