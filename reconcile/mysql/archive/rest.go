package archive

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// offsetOf is the byte that a request asks for an object from, as get writes it; 0 for all of it. Azure has a header of its own for that,
// which its SDK writes in small letters.
func offsetOf(request *http.Request) int64 {
	offset := int64(0)
	for name, values := range request.Header {
		if !strings.EqualFold(name, "Range") && !strings.EqualFold(name, "X-Ms-Range") {
			continue
		}
		if _, err := fmt.Sscanf(strings.Join(values, ","), "bytes=%d-", &offset); err != nil {
			return 0
		}
	}
	return offset
}

// beginAt has an answer begin with the byte that was asked for. Some servers, and caches before them, do not know ranges and answer with
// all of an object (RFC 9110, "Range"). What says that it is another part, or does not say which, is an error: a good backup would be
// called corrupt.
func beginAt(response *http.Response, offset int64) error {
	if response.StatusCode != http.StatusPartialContent {
		response.Body = readCloser{&skipping{from: response.Body, left: offset}, response.Body}
		return nil
	}
	part, start := response.Header.Get("Content-Range"), int64(0)
	if _, err := fmt.Sscanf(strings.ToLower(part), "bytes %d-", &start); err != nil || start != offset { // units have no case (RFC 9110)
		return fmt.Errorf("asked for the bytes from %d on, it answers with %q", offset, part)
	}
	return nil
}

// skipping leaves out the first bytes of what it reads. They are read bit by bit: where the connection breaks again meanwhile, that is one
// more try.
type skipping struct {
	from io.Reader
	left int64
}

// Read implements io.Reader. An object that has fewer bytes than were read of it before does not end: it was changed.
func (s *skipping) Read(p []byte) (int, error) {
	for s.left > 0 {
		n, err := io.CopyN(io.Discard, s.from, s.left)
		s.left -= n
		if isEnd(err) {
			return 0, io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
	}
	return s.from.Read(p)
}
