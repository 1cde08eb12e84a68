package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

const (
	// maxAnswerHeader is the largest header of an answer, in bytes.
	maxAnswerHeader = 16 << 10
	// maxReason is how much of an error is repeated, in bytes: the other side may have chosen its words.
	maxReason = 300
	jsonType  = "application/json"
)

// NewPodClient returns the HTTP client for requests between the operator and one Pod of a cluster. Any program in that Pod may answer, so
// the client follows no redirect, and callers do not trust answers. A caller that gives up a request must call
// CloseIdleConnections, because Go otherwise continues its dial.
func NewPodClient(security *tls.Config, host string) *http.Client {
	security = security.Clone()
	security.ServerName = host
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: security, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxAnswerHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ErrTooLarge reports an answer that is larger than the limit.
var ErrTooLarge = errors.New("the answer is too large")

// AnswerError reports an answer with another status than 200 and 204. It contains nothing that the other side wrote.
type AnswerError struct{ Code int }

func (e *AnswerError) Error() string {
	text := fmt.Sprintf("the answer is %d %s", e.Code, http.StatusText(e.Code))
	switch {
	case e.Code >= http.StatusMultipleChoices && e.Code < http.StatusBadRequest:
		return text + "; redirects are not followed"
	case e.Code == http.StatusUnauthorized:
		return text + ": the other side does not accept this operator's certificate"
	}
	return text
}

// Ask sends a request and returns the JSON of its answer, or nil if the answer has no content. For a refusal (409) it returns the JSON and
// an AnswerError. limit is the largest answer, in bytes.
func Ask(client *http.Client, request *http.Request, limit int64) ([]byte, error) {
	response, err := client.Do(request) //nolint:gosec // it goes to a Pod's address, and no further: no redirect is followed
	if err != nil {
		return nil, truncateError(err)
	}
	defer response.Body.Close()
	return answer(response, limit)
}

// answer reads the body of a response that has one.
func answer(response *http.Response, limit int64) ([]byte, error) {
	switch response.StatusCode {
	case http.StatusNoContent:
		return nil, nil
	case http.StatusOK:
		return readJSON(response, limit)
	case http.StatusConflict:
		body, _ := readJSON(response, limit) // agents of older releases send text instead of JSON
		return body, &AnswerError{Code: response.StatusCode}
	default:
		return nil, &AnswerError{Code: response.StatusCode}
	}
}

func readJSON(response *http.Response, limit int64) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return nil, errors.New("the answer is not JSON")
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, truncateError(err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w: more than %d KiB", ErrTooLarge, limit>>10)
	}
	return body, nil
}

// truncateError truncates an error's text, never within a character. It does not change an error that only reports a timeout or a
// cancellation.
func truncateError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || len(err.Error()) <= maxReason {
		return err
	}
	return errors.New(strings.ToValidUTF8(err.Error()[:maxReason], "") + "…")
}
