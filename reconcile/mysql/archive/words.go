package archive

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"golang.org/x/oauth2"
)

// plainError is an error whose text is the same whenever the same problem occurs. The SDKs' texts contain request identifiers, times and
// ports: in a status, they would change with every attempt and hide the problem.
type plainError struct {
	words string
	cause error
}

func (e *plainError) Error() string { return e.words }
func (e *plainError) Unwrap() error { return e.cause }

func inPlainWords(err error) error { return &plainError{words: words(err), cause: err} }

// words returns the store's own text for a problem if the store answered, else that of the error.
func words(err error) string {
	if missing, ok := errors.AsType[*credentialsError](err); ok {
		return "get credentials: " + words(missing.cause)
	}
	if refused, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok && refused.RawResponse != nil {
		body, _ := runtime.Payload(refused.RawResponse) // without the body, the status must do
		return tokenWords(body, refused.RawResponse.StatusCode)
	}
	if refused, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return formatAnswer(refused.ErrorCode, azureWords(refused), refused.StatusCode) + redirectNote(refused.RawResponse)
	}
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		_, status := answer(err)
		told := formatAnswer(refused.ErrorCode(), refused.ErrorMessage(), status)
		if response, ok := errors.AsType[*awshttp.ResponseError](err); ok && response.HTTPResponse() != nil {
			told += redirectNote(response.HTTPResponse().Response)
		}
		return told
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return server(failed.URL) + ": " + words(failed.Err)
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil {
		return "get a token: " + tokenWords(refused.Body, refused.Response.StatusCode) + redirectNote(refused.Response)
	}
	return stableText(err.Error())
}

// formatAnswer formats an answer: a code, a sentence and the status, as far as they are known.
func formatAnswer(code, message string, status int) string {
	const unknown = "UnknownError" // Amazon's SDK uses it if the answer has no code
	var told []string
	for _, one := range []string{code, stableText(message)} {
		if one != "" && one != unknown && (len(told) == 0 || told[0] != one) {
			told = append(told, one)
		}
	}
	text := strings.Join(told, ": ")
	switch {
	case text == "":
		return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
	case status == 0:
		return text
	}
	return fmt.Sprintf("%s (HTTP %d)", text, status)
}

// redirectNote describes a redirect. It names the target if that is a plain host name.
func redirectNote(response *http.Response) string {
	if response == nil || !isRedirect(response.StatusCode) {
		return ""
	}
	to, err := response.Location()
	if err != nil || !regexp.MustCompile(`^https?://[A-Za-z0-9.-]{1,253}(:\d{1,5})?$`).MatchString(to.Scheme+"://"+to.Host) {
		return "; it is a redirect, and is not followed"
	}
	return "; it is a redirect to " + to.Scheme + "://" + to.Host + ", and is not followed"
}

// tokenWords reads the answer of a token server (RFC 6749, section 5.2).
func tokenWords(body []byte, status int) string {
	var told struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &told) != nil {
		return formatAnswer("", "", status)
	}
	return formatAnswer(told.Code, told.Description, status)
}

// azureWords returns the sentence in an answer of Azure (Blob Storage REST reference, "Status and error codes"). The lines after the first
// identify the request.
func azureWords(refused *azcore.ResponseError) string {
	if refused.RawResponse == nil || refused.RawResponse.Body == nil {
		return ""
	}
	body, err := runtime.Payload(refused.RawResponse)
	var told struct {
		Message string `xml:"Message"`
	}
	if err != nil || xml.Unmarshal(body, &told) != nil {
		return ""
	}
	first, _, _ := strings.Cut(told.Message, "\n")
	return first
}

// server returns the part of a URL that stays the same and contains no secret.
func server(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "the store"
	}
	return parsed.Scheme + "://" + parsed.Host
}

// stableText removes from a text the parts that differ between attempts.
func stableText(text string) string {
	for _, passing := range []struct{ what, instead string }{
		{`\s+`, " "},
		{`[^\s"]+:\d+->`, ""}, // this end of a connection
		{`current time \S+ is `, "now is "},
		{`(RequestID|HostID): [^,]*(, |$)`, ""},
		{` ?(Trace ID|Correlation ID): \S+`, ""},
		{` ?Timestamp: \S+ \S+`, ""},
		{`(part-\d{5})-[0-9a-f]{8}\.tar\.zst(\.age)?`, "$1"},
	} {
		text = regexp.MustCompile(passing.what).ReplaceAllString(text, passing.instead)
	}
	return strings.TrimSpace(text)
}
