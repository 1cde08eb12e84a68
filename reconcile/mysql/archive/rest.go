package archive

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// offsetOf returns the offset that a request asks for an object from, as get writes it; 0 for all of it. Azure has a header of its own,
// which its SDK writes in lower case.
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

// beginAt makes an answer begin with the byte that was asked for. Some servers, and caches in front of them, do not support ranges and send
// all of an object (RFC 9110, "Range"). An answer with another range, or without one, is an error: otherwise a good backup would be
// reported as corrupt.
func beginAt(response *http.Response, offset int64) error {
	if response.StatusCode != http.StatusPartialContent {
		response.Body = readCloser{&skipping{from: response.Body, left: offset}, response.Body}
		return nil
	}
	part, start := response.Header.Get("Content-Range"), int64(0)
	if _, err := fmt.Sscanf(strings.ToLower(part), "bytes %d-", &start); err != nil || start != offset { // units are case-insensitive (RFC 9110)
		return fmt.Errorf("the answer to a request for the bytes from %d on has the range %q", offset, part)
	}
	return nil
}

// skipping drops the first bytes that it reads. It reads them piece by piece: if the connection breaks again meanwhile, that is one more
// try.
type skipping struct {
	from io.Reader
	left int64
}

// Read implements io.Reader. If an object has fewer bytes than were read of it before, it was changed: this is an error, not the end.
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
