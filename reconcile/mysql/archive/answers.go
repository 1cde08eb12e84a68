package archive

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
)

const (
	// listingLimit is larger than any page of a listing: S3 puts 1,000 objects on one, Azure 5,000, each with a name of 1 KiB at most.
	listingLimit = 32 << 20
	// headLimit is the number of bytes within which the root element of a listing must begin.
	headLimit = 4 << 10
	// errorLimit is the maximum number of bytes that are read of an error's body.
	errorLimit = 1 << 20
)

// errNoListing means that, for example, a page of a proxy or a portal arrived instead of the store's answer.
var errNoListing = errors.New("the answer to a listing request is not a listing: the server is not a store, or a proxy answered")

// checkingTransport checks the answers of a store, because the SDKs do not: they take an empty listing, or another document, for the
// listing of an empty folder. They read all of an error's body, however long it is. They do not check that a range answer is the range they
// asked for.
type checkingTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a checkingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.base.RoundTrip(request)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode >= http.StatusMultipleChoices:
		response.Body = limited(response.Body, errorLimit)
	case isListing(request):
		if err := checkListing(response); err != nil {
			return nil, errors.Join(err, response.Body.Close())
		}
	case offsetOf(request) > 0:
		if err := beginAt(response, offsetOf(request)); err != nil {
			return nil, errors.Join(err, response.Body.Close())
		}
	}
	return response, nil
}

// isListing reports whether a request asks S3 or Azure for a listing.
func isListing(request *http.Request) bool {
	query := request.URL.Query()
	return request.Method == http.MethodGet && (query.Has("list-type") || query.Has("uploads") || query.Get("comp") == "list")
}

// checkListing checks the beginning of a listing. An error that arrives with status 200 gets the status that it should have.
func checkListing(response *http.Response) error {
	body := limited(response.Body, listingLimit)
	var head bytes.Buffer
	name, err := rootOf(io.TeeReader(io.LimitReader(body, headLimit), &head))
	switch _, isSyntax := errors.AsType[*xml.SyntaxError](err); {
	case err != nil && !isSyntax && !errors.Is(err, io.EOF):
		return err
	case name == "Error":
		response.StatusCode = http.StatusInternalServerError
	case !slices.Contains([]string{"ListBucketResult", "ListMultipartUploadsResult", "EnumerationResults"}, name):
		return errNoListing
	}
	response.Body = readCloser{io.MultiReader(&head, body), body}
	return nil
}

// rootOf returns the name of an XML document's outermost element.
func rootOf(from io.Reader) (string, error) {
	for decoder := xml.NewDecoder(from); ; {
		token, err := decoder.RawToken()
		if err != nil {
			return "", err
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local, nil
		}
	}
}

// readCloser reads from one value and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

func limited(body io.ReadCloser, limit int64) io.ReadCloser {
	return readCloser{io.LimitReader(body, limit), body}
}
