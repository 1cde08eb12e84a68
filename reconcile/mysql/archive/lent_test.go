package archive

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAzuresBodiesAreReadUntilTheAnswer: a transport that reads on finds nothing more, also of a body that it has asked for again.
func TestAzuresBodiesAreReadUntilTheAnswer(t *testing.T) {
	t.Parallel()
	source := strings.NewReader("all that is sent")
	kept := []io.Reader{}
	azures := discreet{roundTripper(func(request *http.Request) (*http.Response, error) {
		again, err := request.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, request.Body, again)
		for _, body := range kept {
			if read, err := io.ReadAll(io.LimitReader(body, 3)); err != nil || string(read) != "all" {
				t.Errorf("before the answer %q is read (%v)", read, err)
			}
		}
		return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody}, nil
	})}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://store.example/", source)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := azures.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	for _, body := range kept {
		if read, err := io.ReadAll(body); err == nil || len(read) > 0 {
			t.Errorf("after the answer %q is read (%v)", read, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
