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
	// maxReason is how much of an error is repeated, in bytes: what is on the other side may have worded it.
	maxReason = 300
	jsonType  = "application/json"
)

// Questioner makes the HTTP client with which the operator asks the program in one Pod of a cluster. Whatever runs in that Pod may answer:
// no redirect is followed, and no answer is taken for more than what it says. Whoever gives up a question calls CloseIdleConnections, or Go
// goes on with its dial.
func Questioner(security *tls.Config, host string) *http.Client {
	security = security.Clone()
	security.ServerName = host
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: security, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxAnswerHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ErrTooLarge is an answer that is larger than what is read.
var ErrTooLarge = errors.New("its answer is too large")

// AnswerError is an answer of another status than 200 and 204. It has nothing of what the other side wrote.
type AnswerError struct{ Code int }

func (e *AnswerError) Error() string {
	text := fmt.Sprintf("it answered %d %s", e.Code, http.StatusText(e.Code))
	switch {
	case e.Code >= http.StatusMultipleChoices && e.Code < http.StatusBadRequest:
		return text + ", and redirects are not followed"
	case e.Code == http.StatusUnauthorized:
		return text + ": it does not take this operator's certificate"
	}
	return text
}

// Ask sends a request and returns the JSON of its answer, which is nothing if the answer has no content. That of a refusal (409) is
// returned beside the AnswerError. limit is the largest answer, in bytes.
func Ask(client *http.Client, request *http.Request, limit int64) ([]byte, error) {
	response, err := client.Do(request) //nolint:gosec // it goes to a Pod's address, and no further: no redirect is followed
	if err != nil {
		return nil, bounded(err)
	}
	defer response.Body.Close()
	return answer(response, limit)
}

// answer reads what a response has to say.
func answer(response *http.Response, limit int64) ([]byte, error) {
	switch response.StatusCode {
	case http.StatusNoContent:
		return nil, nil
	case http.StatusOK:
		return readJSON(response, limit)
	case http.StatusConflict:
		body, _ := readJSON(response, limit) // agents of older releases say it in words
		return body, &AnswerError{Code: response.StatusCode}
	default:
		return nil, &AnswerError{Code: response.StatusCode}
	}
}

func readJSON(response *http.Response, limit int64) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return nil, errors.New("its answer is not JSON")
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, bounded(err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w: more than %d KiB", ErrTooLarge, limit>>10)
	}
	return body, nil
}

// bounded cuts an error's text off, never within a character, unless it is only that the time is over.
func bounded(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || len(err.Error()) <= maxReason {
		return err
	}
	return errors.New(strings.ToValidUTF8(err.Error()[:maxReason], "") + "…")
}
