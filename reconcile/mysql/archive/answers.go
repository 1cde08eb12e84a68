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
	// headLimit is within how many bytes a listing says that it is one.
	headLimit = 4 << 10
	// errorLimit bounds what a store says about an error.
	errorLimit = 1 << 20
)

// errNoListing is about a page of a proxy or a portal, for example, that answers in the place of the store.
var errNoListing = errors.New("the answer to a listing is none: something else than a store answers")

// answers looks at what a store answers. The SDKs take a listing that is empty, or that is some other document, for one of an empty folder;
// and they read whole what is said about an error, however long it is. Nor do they look whether the rest of an object is what comes.
type answers struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
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

// isListing says whether a request asks S3 or Azure what is there.
func isListing(request *http.Request) bool {
	query := request.URL.Query()
	return request.Method == http.MethodGet && (query.Has("list-type") || query.Has("uploads") || query.Get("comp") == "list")
}

// checkListing looks at how a listing begins. An error that comes with status 200 gets the status that it should have.
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

// rootOf is the name of an XML document's outermost element.
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

// readCloser reads from the one and closes the other.
type readCloser struct {
	io.Reader
	io.Closer
}

func limited(body io.ReadCloser, limit int64) io.ReadCloser {
	return readCloser{io.LimitReader(body, limit), body}
}
