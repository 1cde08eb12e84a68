package archive

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
)

// ignoreRanges makes a remote answer every request for the rest of an object with the whole object, as some servers and caches do.
func (r *remote) ignoreRanges() {
	rewrite := r.proxy.behind.Rewrite
	r.proxy.behind.Rewrite = func(request *httputil.ProxyRequest) {
		rewrite(request)
		request.Out.Header.Del("Range")
		request.Out.Header.Del("X-Ms-Range")
	}
}

// TestRestartedAnswersAreNotCorruption: a connection breaks in the middle of an object, and the answer to the request for the
// rest is the whole object.
func TestRestartedAnswersAreNotCorruption(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"s3", "gs", "azblob"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			remote := remotes()[scheme](t)
			remote.ignoreRanges()
			store := remote.store(t, "folder")
			if _, err := backUp(t.Context(), store, severalPieces(), remoteSize, tree{}); err != nil {
				t.Fatal(err)
			}
			for number := 0; ; number++ {
				remote.proxy.breakAt(faultCutDown, number, number+1)
				if err := readWhole(t, store, ReadOptions{}); err != nil {
					t.Fatalf("the answer to request %d breaks off: %v", number, err)
				}
				if remote.proxy.requests() <= number {
					return
				}
			}
		})
	}
}

// TestTheRestOfAnObjectIsTheRest: the answer to a request for an object from byte 10 on is read from there, or is an error.
func TestTheRestOfAnObjectIsTheRest(t *testing.T) {
	t.Parallel()
	const content, offset = "0123456789abcdef", 10
	for name, test := range map[string]struct {
		// ranges changes the answer's range; nil leaves it correct.
		ranges func(*http.Response)
		whole  bool
		fails  string
	}{
		"the requested range": {},
		"the whole object":    {whole: true},
		"another range":       {ranges: func(r *http.Response) { r.Header.Set("Content-Range", "bytes 4-15/16") }, fails: `the answer to a request for the bytes from 10 on has the range "bytes 4-15/16"`},
		"an unknown range":    {ranges: func(r *http.Response) { r.Header.Del("Content-Range") }, fails: `has the range ""`},
	} {
		for _, scheme := range []string{"s3", "gs", "azblob"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				t.Parallel()
				remote := remotes()[scheme](t)
				if test.whole {
					remote.ignoreRanges()
				}
				store := remote.store(t, "folder")
				if err := store.put(t.Context(), "object", strings.NewReader(content)); err != nil {
					t.Fatal(err)
				}
				if test.ranges != nil {
					remote.proxy.behind.ModifyResponse = func(r *http.Response) error {
						test.ranges(r)
						return nil
					}
				}
				got, err := readFrom(t, store, offset)
				if test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)) {
					t.Errorf("it reads %q (%v), want an error that says %q", got, err, test.fails)
				}
				if test.fails == "" && (err != nil || got != content[offset:]) {
					t.Errorf("it reads %q (%v), want %q", got, err, content[offset:])
				}
			})
		}
	}
}

func readFrom(t *testing.T, store *Store, offset int64) (string, error) {
	t.Helper()
	body, err := store.bucket.get(t.Context(), "object", offset)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(body)
	if closing := body.Close(); closing != nil {
		return "", fmt.Errorf("close: %w", closing)
	}
	return string(content), err
}
