package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakeAzure answers the handful of Blob service requests that a Store sends, as its REST reference describes them.
type fakeAzure struct {
	lock   sync.Mutex
	blobs  map[string][]byte
	blocks map[string][]byte
	refuse string
	status int
}

func newFakeAzure(t *testing.T) (*fakeAzure, Location) {
	t.Helper()
	fake := &fakeAzure{blobs: map[string][]byte{}, blocks: map[string][]byte{}}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	keys := map[string]string{keyAccount: "account", keyAccountKey: base64.StdEncoding.EncodeToString([]byte("a key of the test"))}
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
	case f.refuse != "" || !strings.HasPrefix(r.Header.Get("Authorization"), "SharedKey account:"):
		f.fail(w, max(f.status, http.StatusForbidden), firstOf(f.refuse, "AuthenticationFailed"))
	case query.Get("comp") == "list":
		f.list(w, query.Get("prefix"))
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

func (f *fakeAzure) fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code></Error>", code) // the client may be gone
}

func (f *fakeAzure) commit(w http.ResponseWriter, name string, body []byte) {
	var list struct {
		Latest []string `xml:"Latest"`
	}
	if err := xml.Unmarshal(body, &list); err != nil {
		f.fail(w, http.StatusBadRequest, "InvalidXmlDocument")
		return
	}
	var content []byte
	for _, id := range list.Latest {
		content = append(content, f.blocks[name+"#"+id]...)
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

func TestAzureRefuses(t *testing.T) {
	t.Parallel()
	for code, story := range map[string]struct {
		status int
		kind   Kind
	}{
		"AuthenticationFailed": {http.StatusForbidden, KindRefused},
		"ContainerNotFound":    {http.StatusNotFound, KindNotFound},
		"ServerBusy":           {http.StatusServiceUnavailable, KindUnavailable},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			fake, location := newFakeAzure(t)
			fake.refuse, fake.status = code, story.status
			var failed *StoreError
			if _, err := Begin(t.Context(), opened(t, location), WriteOptions{Identity: owner("nightly")}); !errors.As(err, &failed) || failed.Kind != story.kind {
				t.Errorf("begin: %v", err)
			}
		})
	}
}
