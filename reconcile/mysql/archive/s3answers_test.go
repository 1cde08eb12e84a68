package archive

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// The S3 server of the tests does not give these answers, but other servers do: fakes give them.

// s3Remote returns a store with the API of S3 and a handler as its server.
func s3Remote(t *testing.T, handler http.Handler) *remote {
	t.Helper()
	keys := map[string]string{destination.KeyAccess: "someone", destination.KeySecret: "a secret of the test"}
	return newRemote(t, handler, "s3://backups/%s?region=r&use_path_style=true&endpoint=%s", keys)
}

// If the answer to the request that completes an upload is lost, the retry is refused, because the upload no longer exists. The object
// exists. An answer that is cut off is treated like a lost one.
func TestS3LostAnswersDoNotFailABackup(t *testing.T) {
	t.Parallel()
	for _, lost := range []fault{faultDropped, faultCutDown} {
		t.Run(string(lost), func(t *testing.T) {
			t.Parallel()
			remote := s3Remote(t, newFakeS3())
			for number, sent := 0, 1; number < sent; number += requestStride {
				store := remote.store(t, fmt.Sprint("folder-", number))
				remote.proxy.breakAt(lost, number, number+1)
				if _, err := backUp(t.Context(), store, severalPieces(), remoteSize, tree{}); err != nil {
					t.Fatalf("the answer to request %d is lost: %v", number, err)
				}
				sent = remote.proxy.requests()
				remote.proxy.breakAt("", 0, 0)
				if err := readWhole(t, store, ReadOptions{}); err != nil {
					t.Fatalf("the answer to request %d is lost, verify: %v", number, err)
				}
			}
		})
	}
}

// Servers have several error codes for a damaged body. With each of them, the body is sent again.
func TestS3DamagedBodiesAreSentAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			fake := newFakeS3()
			var refused atomic.Bool
			store := s3Remote(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut && refused.CompareAndSwap(false, true) {
					refuse(w, http.StatusBadRequest, code)
					return
				}
				fake.ServeHTTP(w, r)
			})).store(t, "folder")
			if _, err := backUp(t.Context(), store, severalPieces(), remoteSize, tree{}); err != nil {
				t.Fatal(err)
			}
			if !refused.Load() {
				t.Error("nothing was refused")
			}
			if err := readWhole(t, store, ReadOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Servers have several error codes for unknown credentials, and not all of them come with status 403.
func TestS3UnknownCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{
		"InvalidAccessKeyId": http.StatusForbidden, "SignatureDoesNotMatch": http.StatusForbidden,
		"ExpiredToken": http.StatusBadRequest, "InvalidToken": http.StatusBadRequest, "XAdminUserNotFound": http.StatusNotFound,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			remote := s3Remote(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, code) }))
			_, err := Begin(t.Context(), remote.store(t, "folder"), WriteOptions{Identity: owner("nightly")})
			if failed, ok := errors.AsType[*destination.StoreError](err); !ok || failed.Kind != destination.KindRefused {
				t.Errorf("begin: %v", err)
			}
		})
	}
}
