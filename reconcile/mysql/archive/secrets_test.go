package archive

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// A shared access signature is part of every request's URL, and the error of a request is shown in status, events and logs.
func TestSignaturesAreNotTold(t *testing.T) {
	t.Parallel()
	const signature = "c2lnbmF0dXJl"
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	server := httptest.NewTLSServer(http.HandlerFunc(cut))
	t.Cleanup(server.Close)
	ca := string(pemOf(server.Certificate().Raw))
	for name, endpoint := range map[string]string{"refused": "https://" + closedPort(t), "cut": server.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := map[string]string{destination.KeyAccount: "account", destination.KeySAS: "?sv=2025-01-05&sig=" + signature, destination.KeyEndpoint: endpoint, "ca.crt": ca}
			store := opened(t, Location{URL: "azblob://backups/azure?endpoint=" + endpoint, CredentialsDir: secretDir(t, keys)})
			_, _, err := Load(t.Context(), store)
			if err == nil || strings.Contains(err.Error(), signature) {
				t.Errorf("load: %v", err)
			}
			if told, ok := errors.AsType[*destination.StoreError](err); !ok || told.Kind != destination.KindUnavailable {
				t.Errorf("load: %v", err)
			}
		})
	}
}

func TestMalformedSignatureIsNotTold(t *testing.T) {
	t.Parallel()
	keys := map[string]string{destination.KeyAccount: "account", destination.KeySAS: "sv=2025-01-05\nsig=c2lnbmF0dXJl"}
	_, err := open(t.Context(), Location{URL: "azblob://backups/azure", CredentialsDir: secretDir(t, keys)}, testTuning())
	if told, ok := errors.AsType[*destination.StoreError](err); !ok || told.Kind != destination.KindInvalid || strings.Contains(err.Error(), "c2lnbmF0dXJl") {
		t.Errorf("open: %v", err)
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	var sockets net.ListenConfig
	listener, err := sockets.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// A Secret with only a region sets the region; the credentials are the Pod's identity.
func TestARegionAloneIsNoCredentials(t *testing.T) {
	t.Parallel()
	location := Location{URL: "s3://bucket/folder", CredentialsDir: secretDir(t, map[string]string{destination.KeyRegion: "eu-central-1"})}
	bucket, ok := opened(t, location).bucket.(*s3Bucket)
	if !ok || bucket.client.Options().Region != "eu-central-1" {
		t.Errorf("the region is not that of the Secret")
	}
}
