package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// fakeAzure answers the few Blob service requests that a Store sends, as the REST reference describes them.
type fakeAzure struct {
	lock   sync.Mutex
	blobs  map[string][]byte
	blocks map[string][]byte
	refuse string
	status int
	// authorized is the prefix that every request's Authorization must have.
	authorized string
	// refused counts bodies that did not match their checksum, undigested those without one.
	refused, undigested int
}

func newFakeAzure(t *testing.T) (*fakeAzure, Location) {
	t.Helper()
	fake := &fakeAzure{blobs: map[string][]byte{}, blocks: map[string][]byte{}, authorized: "SharedKey account:"}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	keys := map[string]string{destination.KeyAccount: "account", destination.KeyAccountKey: base64.StdEncoding.EncodeToString([]byte("a key of the test")), destination.KeyEndpoint: server.URL}
	return fake, Location{URL: "azblob://backups/azure?endpoint=" + server.URL, CredentialsDir: secretDir(t, keys)}
}

// ServeHTTP implements http.Handler.
func (f *fakeAzure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/backups/")
	query := r.URL.Query()
	_, exists := f.blobs[name]
	switch {
	case f.refuse != "" || !strings.HasPrefix(r.Header.Get("Authorization"), f.authorized):
		f.fail(w, max(f.status, http.StatusForbidden), firstOf(f.refuse, "AuthenticationFailed"))
	case query.Get("comp") == "list":
		f.list(w, query.Get("prefix"))
	case r.Method == http.MethodPut && !f.intact(r.Header, body):
		f.refused++
		f.fail(w, http.StatusBadRequest, "Crc64Mismatch")
	case r.Method == http.MethodPut && query.Get("comp") == "block":
		f.blocks[name+"#"+query.Get("blockid")] = body
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut && query.Get("comp") == "blocklist":
		f.commit(w, name, body)
	case r.Method == http.MethodPut:
		f.blobs[name] = body
		w.WriteHeader(http.StatusCreated)
	case !exists:
		f.fail(w, http.StatusNotFound, "BlobNotFound")
	case r.Method == http.MethodDelete:
		delete(f.blobs, name)
		w.WriteHeader(http.StatusAccepted)
	default:
		if wanted := r.Header.Get("X-Ms-Range"); wanted != "" {
			r.Header.Set("Range", wanted)
		}
		http.ServeContent(w, r, "", testTime(), bytes.NewReader(f.blobs[name]))
	}
}

// intact reports whether a body matches its checksum (REST reference, "Put Block": x-ms-content-crc64), and counts bodies without one.
func (f *fakeAzure) intact(header http.Header, body []byte) bool {
	want := header.Get("X-Ms-Content-Crc64")
	if want == "" {
		f.undigested++
		return true
	}
	var sum [8]byte
	binary.LittleEndian.PutUint64(sum[:], crc64.Checksum(body, crc64.MakeTable(azurePolynomial)))
	return want == base64.StdEncoding.EncodeToString(sum[:])
}

func (f *fakeAzure) fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code></Error>", code) // the client may be gone
}

func (f *fakeAzure) commit(w http.ResponseWriter, name string, body []byte) {
	var list struct {
		XMLName xml.Name `xml:"BlockList"`
		Latest  []string `xml:"Latest"`
	}
	if err := xml.Unmarshal(body, &list); err != nil {
		f.fail(w, http.StatusBadRequest, "InvalidXmlDocument")
		return
	}
	var content []byte
	for _, id := range list.Latest {
		block, there := f.blocks[name+"#"+id]
		if !there {
			f.fail(w, http.StatusBadRequest, "InvalidBlockList")
			return
		}
		content = append(content, block...)
	}
	f.blobs[name] = content
	w.WriteHeader(http.StatusCreated)
}

func (f *fakeAzure) list(w http.ResponseWriter, prefix string) {
	var names []string
	for name := range f.blobs {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	w.Header().Set("Content-Type", "application/xml")
	var blobs strings.Builder
	for _, name := range names {
		fmt.Fprintf(&blobs, "<Blob><Name>%s</Name><Properties><Content-Length>%d</Content-Length></Properties></Blob>", name, len(f.blobs[name]))
	}
	_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><EnumerationResults ContainerName="backups"><Blobs>%s</Blobs><NextMarker/></EnumerationResults>`, blobs.String()) // the client may be gone
}

func TestAzure(t *testing.T) {
	t.Parallel()
	_, location := newFakeAzure(t)
	conforms(t, opened(t, location))
}

// A Pod with an identity needs no Secret: the URL names the account. In this test it is the identity of the machine, for which a local
// server issues tokens (Azure documentation, "How to use managed identities for App Service": IDENTITY_ENDPOINT). The service accepts only
// such a token.
func TestAzureWithThePodsIdentity(t *testing.T) {
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resource") != "https://storage.azure.com" {
			t.Errorf("a token was requested with %s", r.URL.RawQuery)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_on":"%d"}`, testToken, time.Now().Add(time.Hour).Unix()) // the client may be gone
	}))
	t.Cleanup(issuer.Close)
	t.Setenv("IDENTITY_ENDPOINT", issuer.URL)
	t.Setenv("IDENTITY_HEADER", "a header of the test")
	fake := &fakeAzure{blobs: map[string][]byte{}, blocks: map[string][]byte{}, authorized: "Bearer " + testToken}
	server := httptest.NewTLSServer(fake)
	t.Cleanup(server.Close)
	ca := secretDir(t, map[string]string{"ca.crt": string(pemOf(server.Certificate().Raw)), destination.KeyEndpoint: server.URL})
	conforms(t, opened(t, Location{URL: "azblob://backups/azure?storage_account=account&endpoint=" + server.URL, CredentialsDir: ca}))
}

func TestAzureAccounts(t *testing.T) {
	t.Parallel()
	key := map[string]string{destination.KeyAccountKey: base64.StdEncoding.EncodeToString([]byte("a key of the test"))}
	with := func(account string) map[string]string {
		return map[string]string{destination.KeyAccount: account, destination.KeyAccountKey: key[destination.KeyAccountKey]}
	}
	for name, story := range map[string]struct {
		options string
		secret  map[string]string
		host    string
		refused string
	}{
		"of the Secret":            {secret: with("mine"), host: "mine.blob.core.windows.net"},
		"of the URL":               {options: "?storage_account=yours", secret: key, host: "yours.blob.core.windows.net"},
		"of both: that of the URL": {options: "?storage_account=yours", secret: with("mine"), host: "yours.blob.core.windows.net"},
		"of neither":               {secret: key, refused: "add ?storage_account=… to the URL, or AZURE_STORAGE_ACCOUNT to the Secret"},
		"an invalid name":          {options: "?storage_account=example.com/", secret: key, refused: `"example.com/" is not the name of a storage account`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := open(t.Context(), Location{URL: "azblob://backups/azure" + story.options, CredentialsDir: secretDir(t, story.secret)}, testTuning())
			if told, ok := errors.AsType[*destination.StoreError](err); story.refused != "" && (!ok || told.Kind != destination.KindInvalid || !strings.Contains(err.Error(), story.refused)) {
				t.Errorf("open: %v", err)
			}
			if story.refused != "" {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			bucket, ok := store.bucket.(azureBucket)
			if !ok || !strings.HasPrefix(bucket.client.URL(), "https://"+story.host+"/backups") {
				t.Errorf("the URL is %v", bucket.client.URL())
			}
		})
	}
}

func TestAzureRefuses(t *testing.T) {
	t.Parallel()
	for code, story := range map[string]struct {
		status int
		kind   destination.Kind
	}{
		"AuthenticationFailed": {http.StatusForbidden, destination.KindRefused},
		"ContainerNotFound":    {http.StatusNotFound, destination.KindNotFound},
		"ServerBusy":           {http.StatusServiceUnavailable, destination.KindUnavailable},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			fake, location := newFakeAzure(t)
			fake.refuse, fake.status = code, story.status
			var failed *destination.StoreError
			if _, err := Begin(t.Context(), opened(t, location), WriteOptions{Identity: owner("nightly")}); !errors.As(err, &failed) || failed.Kind != story.kind {
				t.Errorf("begin: %v", err)
			}
		})
	}
}

func TestAzureListingWithoutAList(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerXML(w, "EnumerationResults", "") }))
	t.Cleanup(server.Close)
	keys := map[string]string{destination.KeyAccount: "account", destination.KeyAccountKey: "YQ==", destination.KeyEndpoint: server.URL}
	store := opened(t, Location{URL: "azblob://backups/azure?endpoint=" + server.URL, CredentialsDir: secretDir(t, keys)})
	if found, err := store.list(t.Context()); err == nil {
		t.Errorf("it lists %v", found)
	}
}
