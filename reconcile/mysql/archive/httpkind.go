package archive

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"golang.org/x/oauth2"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// credentialsError means that there are no credentials to send a request with.
type credentialsError struct{ cause error }

func (e *credentialsError) Error() string { return "get credentials: " + e.cause.Error() }
func (e *credentialsError) Unwrap() error { return e.cause }

// httpKind classifies the error of a store's client.
func httpKind(err error) destination.Kind {
	var endpoint *destination.EndpointError
	var credentials *credentialsError
	var token *oauth2.RetrieveError
	var azure *azidentity.AuthenticationFailedError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &endpoint):
		return destination.KindEndpoint
	case errors.As(err, &credentials), errors.As(err, &azure):
		return destination.KindRefused
	case errors.As(err, &token):
		switch {
		case token.Response != nil && token.Response.StatusCode >= http.StatusInternalServerError:
			return destination.KindUnavailable
		case token.Response != nil && isRedirect(token.Response.StatusCode):
			return destination.KindRedirected
		}
		return destination.KindRefused
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &name):
		return destination.KindUntrusted
	}
	return kindOf(answer(err))
}

// answer returns the store's own error code and the HTTP status. They are empty and 0 if the store did not answer.
func answer(err error) (code string, status int) {
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return response.ErrorCode, response.StatusCode
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	}
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		status = response.HTTPStatusCode()
	}
	return code, status
}

// kindOf classifies the error codes of S3 (API reference, "Error responses"), of Google (XML API, "HTTP status and error codes"), of Azure
// ("Blob Storage error codes"), and of other servers with the API of S3.
func kindOf(code string, status int) destination.Kind {
	switch code {
	case "RequestTimeTooSkewed", "RequestExpired":
		return destination.KindClockSkew
	case "NoSuchBucket", "ContainerNotFound":
		return destination.KindNotFound
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthenticationFailed", "InvalidSecurity", "XAdminUserNotFound":
		return destination.KindRefused
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "InvalidBucketName", "InvalidResourceName", "InvalidURI", "InvalidRequest":
		return destination.KindInvalid
	}
	if status == http.StatusInsufficientStorage || strings.Contains(code, "Quota") || strings.Contains(code, "StorageFull") || strings.Contains(code, "NoSpace") {
		return destination.KindFull
	}
	switch {
	case isRedirect(status):
		return destination.KindRedirected
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return destination.KindRefused
	case status == http.StatusNotImplemented, status == http.StatusMethodNotAllowed:
		return destination.KindInvalid
	}
	return destination.KindUnavailable
}

// isRedirect reports whether a status is a redirect.
func isRedirect(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusBadRequest && status != http.StatusNotModified
}
