package archive

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// listingAgain answers each request for a page of a listing with the next of these tokens, and starts again after the last.
type listingAgain struct {
	tokens []string
	asked  atomic.Int32
}

// token returns the next token.
func (l *listingAgain) token() string {
	return l.tokens[int(l.asked.Add(1)-1)%len(l.tokens)]
}

func (l *listingAgain) serveS3(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("uploads") {
		answerXML(w, "ListMultipartUploadsResult", "<IsTruncated>true</IsTruncated><NextKeyMarker>"+l.token()+"</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>")
		return
	}
	answerXML(w, "ListBucketResult", "<IsTruncated>true</IsTruncated><NextContinuationToken>"+l.token()+"</NextContinuationToken>")
}

func (l *listingAgain) serveAzure(w http.ResponseWriter, _ *http.Request) {
	answerXML(w, "EnumerationResults", "<Blobs></Blobs><NextMarker>"+l.token()+"</NextMarker>")
}

// TestAListingThatNeverEndsIsAnError: the store always says that there is more, and sends a token that it has sent before, or none.
func TestAListingThatNeverEndsIsAnError(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string][]string{"the same token": {"a"}, "tokens in turn": {"a", "b", "c"}, "no token": {""}} {
		for scheme, url := range map[string]string{"s3": "s3://backups/%s?region=r&use_path_style=true&endpoint=%s", "azblob": "azblob://backups/%s?endpoint=%s"} {
			for what, begin := range map[string]func(*Store) error{
				"list":     func(s *Store) error { _, err := s.list(t.Context()); return err },
				"clean up": func(s *Store) error { return s.sweep(t.Context()) },
			} {
				if scheme == "azblob" && (what != "list" || tokens[0] == "") {
					continue // Azure has nothing to clean up, and an empty token ends its listing
				}
				t.Run(fmt.Sprintf("%s, %s: %s", scheme, what, name), func(t *testing.T) {
					t.Parallel()
					listing := &listingAgain{tokens: tokens}
					handler, keys := http.HandlerFunc(listing.serveS3), map[string]string{destination.KeyAccess: "someone", destination.KeySecret: "a secret of the test"}
					if scheme == "azblob" {
						handler, keys = listing.serveAzure, map[string]string{destination.KeyAccount: "account", destination.KeyAccountKey: "YQ=="}
					}
					store := newRemote(t, handler, url, keys).store(t, "shop/db/nightly")
					err := ends(t, func() error { return begin(store) })
					if failed, ok := errors.AsType[*destination.StoreError](err); !ok || failed.Kind != destination.KindUnavailable || !strings.Contains(err.Error(), what+" "+scheme+"://backups/shop/db/nightly: ") {
						t.Errorf("%v", err)
					}
					if asked := int(listing.asked.Load()); asked > len(tokens)+1 {
						t.Errorf("it was asked %d times", asked)
					}
				})
			}
		}
	}
}

// ends returns the result of run, and fails the test if run takes too long.
func ends(t *testing.T, run func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- run() }()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
		return nil
	}
}
