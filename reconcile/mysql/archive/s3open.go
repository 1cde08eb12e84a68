package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

const (
	// credentialsAge is how long credentials from files are used before the files are read again, so that a changed Secret takes effect.
	credentialsAge = time.Minute
	// continueFrom is the size from which an object is sent only after the store has agreed to take it ("100 Continue"). Otherwise the
	// answer of a store that refuses the object and closes the connection would be lost.
	continueFrom = 64 << 10
	// defaultRegion is the region that servers other than Amazon's expect, if they check it.
	defaultRegion = "us-east-1"
)

// openS3 opens a Store on a bucket with the API of S3.
func openS3(ctx context.Context, store *Store, location Location, place destination.Place) error {
	client, err := httpClient(location, store.tuning)
	if err != nil {
		return err
	}
	loaded, err := s3Config(ctx, store, location, place, client)
	if err != nil {
		return err
	}
	endpoint := place.Option("endpoint")
	pathStyle := place.Option("use_path_style")
	if pathStyle != "" && pathStyle != "true" && pathStyle != "false" {
		return fmt.Errorf("use_path_style=%s: it must be true or false", pathStyle)
	}
	store.bucket = newS3Bucket(s3.NewFromConfig(loaded, func(options *s3.Options) {
		options.UsePathStyle = pathStyle == "true"
		options.ContinueHeaderThresholdBytes = continueFrom
		options.APIOptions = append(options.APIOptions, signContent)
		if endpoint != "" {
			options.BaseEndpoint = &endpoint
		}
	}), place, store.tuning.piece)
	store.classify, store.release = httpKind, closer(client)
	return nil
}

// closer ends a client's connections.
func closer(client *http.Client) func() error {
	return func() error {
		client.CloseIdleConnections()
		return nil
	}
}

// s3Config returns the settings for signing, sending and repeating requests. The SDK finds the Pod's identity with an HTTP client of its
// own.
func s3Config(ctx context.Context, store *Store, location Location, place destination.Place, client *http.Client) (aws.Config, error) {
	keys, err := readKeys(location.CredentialsDir, destination.KeyAccess, destination.KeySecret, destination.KeyRegion)
	if err != nil {
		return aws.Config{}, err
	}
	if (keys[destination.KeyAccess] == "") != (keys[destination.KeySecret] == "") {
		return aws.Config{}, fmt.Errorf("read credentials: the Secret must have both %s and %s, and has only one", destination.KeyAccess, destination.KeySecret)
	}
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if region := firstOf(place.Option("region"), keys[destination.KeyRegion]); region != "" {
		options = append(options, config.WithRegion(region))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("load the environment's settings for S3: %w", err)
	}
	if loaded.Region == "" && place.Option("endpoint") == "" {
		return aws.Config{}, fmt.Errorf("no region: add ?region=… to the URL, or %s to the Secret", destination.KeyRegion)
	}
	if strings.Contains(loaded.Region, ".") && (place.Option("endpoint") == "" || keys[destination.KeyAccess] == "") {
		// The region becomes part of host names: those of the store, and those that the identity of the Pod is sent to.
		return aws.Config{}, fmt.Errorf("region=%s: it is not the name of a region", loaded.Region)
	}
	loaded.Region = firstOf(loaded.Region, defaultRegion)
	s3Requests(&loaded, store.tuning, client)
	if keys[destination.KeyAccess] != "" {
		loaded.Credentials = aws.NewCredentialsCache(secretFiles{location: location, place: place})
	}
	loaded.Credentials = explainedCredentials{loaded.Credentials}
	return loaded, nil
}

// signContent makes the SDK sign the SHA-256 of the content over HTTPS, too, which it would leave out. TLS may end at a proxy far from the
// store. A store that does not check the MD5 (see digest) of pieces checks this.
func signContent(stack *middleware.Stack) error {
	signed := &v4.ComputePayloadSHA256{}
	_, err := stack.Finalize.Swap(signed.ID(), signed)
	return err
}

// s3Requests configures how requests are sent. It turns the SDK's own checksums off, because servers other than Amazon's may fail on them.
// Each object and piece is sent with its MD5 (see digest), and what is read is checked against the manifest.
func s3Requests(settings *aws.Config, tuning tuning, client *http.Client) {
	settings.HTTPClient = http11Client{client}
	settings.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	settings.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	settings.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = tuning.attempts
			o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(damaged))
			o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return tuning.backoff(attempt), nil })
		})
	}
}

// http11Client marks requests as HTTP/1.1. The SDK leaves the version open, and http.Transport then does not wait for the "100 Continue"
// that the SDK asks for: it would send all of an object to a store that has already refused it.
type http11Client struct{ *http.Client }

// Do implements aws.HTTPClient.
func (v http11Client) Do(request *http.Request) (*http.Response, error) {
	request.Proto, request.ProtoMajor, request.ProtoMinor = "HTTP/1.1", 1, 1
	return v.Client.Do(request) //nolint:gosec // the owner of the data chose the URL
}

// damaged reports whether a request or its answer was damaged on the way. The SDK does not repeat such requests by itself.
func damaged(err error) aws.Ternary {
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return aws.TrueTernary
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return aws.UnknownTernary
	}
	switch api.ErrorCode() {
	case "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody": // some servers send InvalidDigest and mean BadDigest
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// secretFiles reads credentials from files. They expire after credentialsAge and are then read again.
type secretFiles struct {
	location Location
	place    destination.Place
}

// Retrieve implements aws.CredentialsProvider.
func (s secretFiles) Retrieve(context.Context) (aws.Credentials, error) {
	keys, err := readKeys(s.location.CredentialsDir, destination.KeyAccess, destination.KeySecret, destination.KeySession)
	if err != nil {
		return aws.Credentials{}, err
	}
	if err := s.location.checkEndpoint(s.place); err != nil {
		return aws.Credentials{}, err
	}
	if keys[destination.KeyAccess] == "" || keys[destination.KeySecret] == "" {
		return aws.Credentials{}, errors.New("the Secret no longer has " + destination.KeyAccess + " and " + destination.KeySecret)
	}
	return aws.Credentials{
		AccessKeyID: keys[destination.KeyAccess], SecretAccessKey: keys[destination.KeySecret], SessionToken: keys[destination.KeySession],
		Source: "Secret", CanExpire: true, Expires: time.Now().Add(credentialsAge),
	}, nil
}

// explainedCredentials marks errors of finding credentials.
type explainedCredentials struct{ aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (e explainedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := e.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, &credentialsError{cause: err}
	}
	return found, nil
}
