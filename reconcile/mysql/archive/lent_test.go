package archive

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAzuresBodiesAreReadUntilTheAnswer: a transport that continues to read after the answer gets an error, also from a body of GetBody.
func TestAzuresBodiesAreReadUntilTheAnswer(t *testing.T) {
	t.Parallel()
	source := strings.NewReader("all that is sent")
	kept := []io.Reader{}
	azures := redactingTransport{roundTripper(func(request *http.Request) (*http.Response, error) {
		again, err := request.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, request.Body, again)
		for _, body := range kept {
			if read, err := io.ReadAll(io.LimitReader(body, 3)); err != nil || string(read) != "all" {
				t.Errorf("before the answer: read %q (%v)", read, err)
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
			t.Errorf("after the answer: read %q (%v)", read, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
