package archive

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// Google's XML API is that of S3 with another authentication. In this test a real S3 server is behind a proxy that demands Google's: a
// token, and none of Amazon's headers.
func TestGCS(t *testing.T) {
	t.Parallel()
	gateway := startGateway(t)
	issuer := httptest.NewServer(http.HandlerFunc(issueToken))
	t.Cleanup(issuer.Close)
	asGoogle := newProxy(t, gateway.url, func(s3 http.Handler) *httptest.Server { return httptest.NewTLSServer(demandToken(s3)) }, resign(t))
	secret := func(account string) string {
		ca := string(pemOf(asGoogle.server.Certificate().Raw))
		return secretDir(t, map[string]string{destination.KeyServiceAccount: account, destination.KeyEndpoint: asGoogle.server.URL, "ca.crt": ca})
	}
	location := func(issuerURL string) Location {
		return Location{
			URL:            "gs://" + gatewayBucket + "/google?endpoint=" + asGoogle.server.URL,
			CredentialsDir: secret(serviceAccountKey(t, issuerURL)),
		}
	}
	t.Run("conforms", func(t *testing.T) {
		t.Parallel()
		conforms(t, opened(t, location(issuer.URL)))
	})
	t.Run("key revoked", func(t *testing.T) {
		t.Parallel()
		revoked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant"}`) // the client may be gone
		}))
		t.Cleanup(revoked.Close)
		var failed *destination.StoreError
		if _, err := Begin(t.Context(), opened(t, location(revoked.URL)), WriteOptions{Identity: owner("nightly")}); !errors.As(err, &failed) || failed.Kind != destination.KindRefused {
			t.Errorf("begin: %v", err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		t.Parallel()
		broken := location(issuer.URL)
		broken.CredentialsDir = secret("{}")
		var failed *destination.StoreError
		if _, err := Open(t.Context(), broken); !errors.As(err, &failed) || failed.Kind != destination.KindInvalid {
			t.Errorf("open: %v", err)
		}
	})
}

const testToken = "a-token-of-the-test"

func issueToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.PostForm.Get("assertion") == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"access_token":"`+testToken+`","token_type":"Bearer","expires_in":3600}`) // the client may be gone
}

func demandToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(strings.ToLower(name), "x-amz-") {
				refuse(w, http.StatusBadRequest, "InvalidHeader")
				return
			}
		}
		if r.Header.Get("Authorization") != "Bearer "+testToken {
			refuse(w, http.StatusUnauthorized, "AuthenticationRequired")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// resign replaces the token by a signature that the S3 server accepts.
func resign(t *testing.T) func(*http.Request) {
	t.Helper()
	signer := v4.NewSigner()
	return func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		credentials := aws.Credentials{AccessKeyID: gatewayAccess, SecretAccessKey: gatewaySecret}
		if err := signer.SignHTTP(context.WithoutCancel(r.Context()), credentials, r, "UNSIGNED-PAYLOAD", "s3", "us-east-1", time.Now()); err != nil {
			t.Errorf("sign: %v", err)
		}
	}
}

func serviceAccountKey(t *testing.T, issuer string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "backup@example.iam.gserviceaccount.com", "token_uri": issuer, "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
