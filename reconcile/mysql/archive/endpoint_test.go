package archive

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// secretsOf returns Secrets for each kind of store, and whether their credentials are shown to the server.
func secretsOf() map[string]struct {
	url   string
	keys  map[string]string
	shown bool
} {
	return map[string]struct {
		url   string
		keys  map[string]string
		shown bool
	}{
		"s3: a key":                {"s3://b/f?region=r", map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b"}, false},
		"s3: a session":            {"s3://b/f?region=r", map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b", destination.KeySession: "c"}, true},
		"s3: the Pod's identity":   {"s3://b/f?region=r", map[string]string{}, true},
		"gs: an account":           {"gs://b/f?", map[string]string{destination.KeyServiceAccount: "{}"}, true},
		"gs: the Pod's identity":   {"gs://b/f?", map[string]string{}, true},
		"azblob: a key":            {"azblob://b/f?storage_account=mine", map[string]string{destination.KeyAccountKey: "a"}, false},
		"azblob: a signature":      {"azblob://b/f?storage_account=mine", map[string]string{destination.KeyAccount: "mine", destination.KeySAS: "a"}, true},
		"azblob: the Pod's":        {"azblob://b/f?storage_account=mine", map[string]string{}, true},
		"azblob: both, key counts": {"azblob://b/f?storage_account=mine", map[string]string{destination.KeySAS: "a", destination.KeyAccountKey: "a"}, false},
	}
}

// A server that the Secret does not name receives no request at all.
func TestAStrangersServerSeesNoCredentials(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	look := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) })
	secure, plain := httptest.NewTLSServer(look), httptest.NewServer(look)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	for name, secret := range secretsOf() {
		for _, endpoint := range []string{secure.URL, plain.URL} {
			keys := maps.Clone(secret.keys)
			keys["ca.crt"] = string(pemOf(secure.Certificate().Raw))
			store, err := open(t.Context(), Location{URL: secret.url + "&endpoint=" + endpoint, CredentialsDir: secretDir(t, keys)}, testTuning())
			if err == nil {
				_, err = store.list(t.Context())
			}
			told, ok := errors.AsType[*destination.StoreError](err)
			wants := destination.KindEndpoint
			if endpoint == plain.URL && secret.shown {
				wants = destination.KindInvalid
			}
			if !ok || told.Kind != wants {
				t.Errorf("%s to %s: %v", name, endpoint, err)
			}
			if remedy := fmt.Sprint(err); wants == destination.KindEndpoint && !strings.Contains(remedy, `add the key "endpoint" with its URL to the destination's Secret`) {
				t.Errorf("no remedy: %s", remedy)
			}
		}
	}
	if seen := seen.Load(); seen > 0 {
		t.Errorf("the server received %d requests", seen)
	}
}

// A changed Secret takes effect, also if it no longer names the endpoint.
func TestAnEndpointThatIsNoLongerNamed(t *testing.T) {
	t.Parallel()
	location := Location{URL: "s3://b/f?endpoint=https://store.example", CredentialsDir: secretDir(t, map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b", destination.KeyEndpoint: "store.example"})}
	place, err := destination.Parse(location.URL)
	if err != nil {
		t.Fatal(err)
	}
	source := secretFiles{location: location, place: place}
	if _, err := source.Retrieve(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.location.CredentialsDir = secretDir(t, map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b"})
	_, err = explainedCredentials{source}.Retrieve(t.Context())
	if err == nil || httpKind(err) != destination.KindEndpoint {
		t.Errorf("got %v", err)
	}
}

// A region is part of the host names that tokens are sent to.
func TestRegionsAreNoHosts(t *testing.T) {
	t.Parallel()
	own := map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b", destination.KeyEndpoint: "https://store.example"}
	for url, want := range map[string]bool{
		"s3://b/f?region=s3.us-east-1": false,
		// The identity of the Pod is shown to a server whose name contains the region, wherever the data is stored.
		"s3://b/f?region=s3.us-east-1&endpoint=https://s3.us-east-1.amazonaws.com": false,
		"s3://b/f?region=us-east-1&endpoint=https://s3.us-east-1.amazonaws.com":    true,
	} {
		_, err := open(t.Context(), Location{URL: url}, testTuning())
		if told, ok := errors.AsType[*destination.StoreError](err); want != (err == nil) || !want && (!ok || told.Kind != destination.KindInvalid) {
			t.Errorf("open %s: %v", url, err)
		}
	}
	if _, err := open(t.Context(), Location{URL: "s3://b/f?region=my.store&endpoint=https://store.example", CredentialsDir: secretDir(t, own)}, testTuning()); err != nil {
		t.Errorf("a user's own server: %v", err)
	}
}
