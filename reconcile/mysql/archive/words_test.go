package archive

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// The errors of a destination are shown in a status, which must not change with every attempt that fails for the same reason.
func TestErrorsAreTheSameAtEveryAttempt(t *testing.T) {
	t.Parallel()
	const amazon = `<Error><Code>AccessDenied</Code><Message>You may not.</Message><RequestId>%[1]d</RequestId><HostId>host %[1]d</HostId></Error>`
	const azure = "<?xml version=\"1.0\"?><Error><Code>AuthorizationFailure</Code><Message>You may not.\nRequestId:%[1]d\nTime:2026-11-21T12:00:%02[1]d.1234567Z</Message></Error>"
	tests := map[string]struct {
		url    string
		secret map[string]string
		answer http.HandlerFunc
		want   string
	}{
		"s3": {
			url: "s3://bucket/folder?use_path_style=true&endpoint=", secret: map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b"},
			answer: refusing(http.StatusForbidden, amazon), want: "list s3://bucket/folder: AccessDenied: You may not. (HTTP 403); ",
		},
		"s3, cut off": {
			url: "s3://bucket/folder?use_path_style=true&endpoint=", secret: map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b"},
			answer: cut, want: "list s3://bucket/folder: SERVER: EOF; ",
		},
		"s3, without a body": {
			url: "s3://bucket/folder?use_path_style=true&endpoint=", secret: map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b"},
			answer: refusing(http.StatusForbidden, ""), want: "list s3://bucket/folder: Forbidden (HTTP 403); ",
		},
		"gs, the token": {
			url: "gs://bucket/folder?endpoint=", secret: map[string]string{destination.KeyServiceAccount: "SERVER"},
			answer: refusing(http.StatusBadRequest, `{"error":"invalid_grant","error_description":"No such account.","trace":"%d"}`),
			want:   "list gs://bucket/folder: SERVER: get a token: invalid_grant: No such account. (HTTP 400); ",
		},
		"gs, the token, without a reason": {
			url: "gs://bucket/folder?endpoint=", secret: map[string]string{destination.KeyServiceAccount: "SERVER"},
			answer: refusing(http.StatusForbidden, `<html>%d</html>`),
			want:   "list gs://bucket/folder: SERVER: get a token: HTTP 403 Forbidden; ",
		},
		"azblob": {
			url: "azblob://bucket/folder?endpoint=", secret: map[string]string{destination.KeyAccount: "account", destination.KeyAccountKey: "YQ=="},
			answer: refusing(http.StatusForbidden, azure), want: "list azblob://bucket/folder: AuthorizationFailure: You may not. (HTTP 403); ",
		},
		"azblob, cut off": {
			url: "azblob://bucket/folder?endpoint=", secret: map[string]string{destination.KeyAccount: "account", destination.KeyAccountKey: "YQ=="},
			answer: cut, want: "list azblob://bucket/folder: SERVER: EOF; ",
		},
		"s3, a redirect": {
			url: "s3://bucket/folder?use_path_style=true&endpoint=", secret: map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b"},
			answer: pointing("https://login.example/?from=%d"), want: "list s3://bucket/folder: Found (HTTP 302); it is a redirect to https://login.example, and is not followed; ",
		},
		"s3, a redirect to no host": {
			url: "s3://bucket/folder?use_path_style=true&endpoint=", secret: map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b"},
			answer: pointing("https://say=this!/%d"), want: "list s3://bucket/folder: Found (HTTP 302); it is a redirect, and is not followed; ",
		},
		"gs, a redirect of the token": {
			url: "gs://bucket/folder?endpoint=", secret: map[string]string{destination.KeyServiceAccount: "SERVER"},
			answer: pointing("http://10.0.0.1:8080/%d"),
			want:   "list gs://bucket/folder: SERVER: get a token: HTTP 302 Found; it is a redirect to http://10.0.0.1:8080, and is not followed; ",
		},
		"azblob, a redirect": {
			url: "azblob://bucket/folder?endpoint=", secret: map[string]string{destination.KeyAccount: "account", destination.KeyAccountKey: "YQ=="},
			answer: pointing("https://login.example/?from=%d"), want: "list azblob://bucket/folder: HTTP 302 Found; it is a redirect to https://login.example, and is not followed; ",
		},
		"s3, a page in the place of a listing": {
			url: "s3://bucket/folder?use_path_style=true&endpoint=", secret: map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b"},
			answer: refusing(http.StatusOK, "<!DOCTYPE html><html><p>Log in, %d!</html>"), want: "list s3://bucket/folder: SERVER: the answer to a listing request is not a listing: ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(test.answer)
			t.Cleanup(server.Close)
			test.secret[destination.KeyEndpoint], test.secret["ca.crt"] = server.URL, string(pemOf(server.Certificate().Raw))
			if test.secret[destination.KeyServiceAccount] != "" {
				test.secret[destination.KeyServiceAccount] = serviceAccountKey(t, server.URL)
			}
			store := opened(t, Location{URL: test.url + server.URL, CredentialsDir: secretDir(t, test.secret)})
			want := strings.ReplaceAll(test.want, "SERVER", server.URL)
			for range 2 {
				if _, err := store.list(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %v; want %s…", err, want)
				}
			}
		})
	}
}

// pointing answers with a redirect whose target contains the number of the request.
func pointing(to string) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", fmt.Sprintf(to, requests.Add(1)))
		w.WriteHeader(http.StatusFound)
	}
}

// refusing answers with an error that contains the number of the request.
func refusing(status int, words string) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		number := requests.Add(1)
		w.Header().Set("X-Amz-Request-Id", fmt.Sprint(number))
		w.Header().Set("X-Ms-Request-Id", fmt.Sprint(number))
		w.WriteHeader(status)
		if words != "" {
			_, _ = fmt.Fprintf(w, words, number) // the client may be gone
		}
	}
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close() // the client sees a cut connection
	}
}

func TestWordsThatChangeAreLeftOut(t *testing.T) {
	t.Parallel()
	token := `{"error":"invalid_client","error_description":"AADSTS700016: There is no such application. Trace ID: 1-2 Correlation ID: 3-4 Timestamp: 2026-11-21 12:00:00Z"}`
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"this end of a connection": {errors.New("read tcp 10.1.2.3:41234->10.9.8.7:443: read: connection reset by peer"), "read tcp 10.9.8.7:443: read: connection reset by peer"},
		"a name server":            {errors.New("lookup s3.example.com on 10.96.0.10:53: read udp 10.1.2.3:5555->10.96.0.10:53: i/o timeout"), "lookup s3.example.com on 10.96.0.10:53: read udp 10.96.0.10:53: i/o timeout"},
		"the time":                 {errors.New("x509: certificate has expired or is not yet valid: current time 2026-11-21T12:00:00Z is after 2026-11-20T00:00:00Z"), "x509: certificate has expired or is not yet valid: now is after 2026-11-20T00:00:00Z"},
		"Amazon's identifiers":     {errors.New("operation error STS: AssumeRoleWithWebIdentity, https response error StatusCode: 500, RequestID: 12-34, HostID: abc=, deserialization failed"), "operation error STS: AssumeRoleWithWebIdentity, https response error StatusCode: 500, deserialization failed"},
		"which attempt it is":      {errors.New("write part-00002-3f9c2a1b.tar.zst.age: no space"), "write part-00002: no space"},
		"several lines":            {errors.New("no token.\nTried:\n\tone\n\t\tanother"), "no token. Tried: one another"},
		"Azure's identities": {
			&credentialsError{cause: &azidentity.AuthenticationFailedError{RawResponse: &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(strings.NewReader(token))}}},
			"get credentials: invalid_client: AADSTS700016: There is no such application. (HTTP 401)",
		},
	} {
		if got := inPlainWords(test.err).Error(); got != test.want {
			t.Errorf("%s: %s; want %s", name, got, test.want)
		}
	}
}

// The Secret names the CA to trust, like the credentials: a user can correct it while the backup is retried.
func TestCertificatesThatAreNotTrusted(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // handshakes that fail
	server.StartTLS()
	t.Cleanup(server.Close)
	byOtherName := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	for name, test := range map[string]struct {
		endpoint, ca, says string
	}{
		"by an unknown CA": {endpoint: server.URL, says: "certificate signed by unknown authority"},
		"for another name": {endpoint: byOtherName, ca: string(pemOf(server.Certificate().Raw)), says: "not localhost"},
	} {
		for _, url := range []string{"s3://bucket/folder?use_path_style=true&endpoint=", "azblob://bucket/folder?endpoint="} {
			t.Run(name+" "+url, func(t *testing.T) {
				t.Parallel()
				location := Location{URL: url + test.endpoint, CredentialsDir: secretDir(t, map[string]string{destination.KeyAccess: "a", destination.KeySecret: "b", destination.KeyAccount: "account", destination.KeyAccountKey: "YQ==", destination.KeyEndpoint: test.endpoint})}
				if test.ca != "" {
					if err := os.WriteFile(filepath.Join(location.CredentialsDir, "ca.crt"), []byte(test.ca), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				_, err := opened(t, location).list(t.Context())
				told, ok := errors.AsType[*destination.StoreError](err)
				if !ok || told.Kind != destination.KindUntrusted || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "ca.crt") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}
