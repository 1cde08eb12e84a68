package archive

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

const (
	gcsEndpoint = "https://storage.googleapis.com"
	gcsScope    = "https://www.googleapis.com/auth/devstorage.read_write"
)

// openGCS opens a Store on a bucket of Google Cloud Storage. Its XML API is that of S3, multipart uploads included, and accepts Google's
// own tokens (Cloud Storage documentation, "XML API overview"). It takes a hundredth of the space of Google's own library. See docs/adr.
func openGCS(ctx context.Context, store *Store, location Location, place destination.Place) error {
	client, err := httpClient(location, store.tuning)
	if err != nil {
		return err
	}
	endpoint := firstOf(place.Option("endpoint"), gcsEndpoint)
	tokens, err := googleTokens(ctx, location, client)
	if err != nil {
		return err
	}
	settings := aws.Config{Region: "auto", Credentials: aws.AnonymousCredentials{}}
	s3Requests(&settings, store.tuning, unredirected(bearer{tokens: tokens, base: client.Transport}))
	store.bucket = newS3Bucket(s3.NewFromConfig(settings, func(options *s3.Options) {
		options.UsePathStyle, options.BaseEndpoint, options.ContinueHeaderThresholdBytes = true, &endpoint, continueFrom
	}), place, store.tuning.piece)
	store.classify, store.release = httpKind, closer(client)
	return nil
}

// googleTokens returns tokens for the service account key in the Secret, or for the identity of the Pod (GKE workload identity, or the file
// that GOOGLE_APPLICATION_CREDENTIALS names).
func googleTokens(ctx context.Context, location Location, client *http.Client) (oauth2.TokenSource, error) {
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, client)
	key, err := readKey(location.CredentialsDir, destination.KeyServiceAccount)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return oauth2.ReuseTokenSource(nil, podIdentity{ctx: ctx}), nil
	}
	source := serviceAccount{ctx: ctx, dir: location.CredentialsDir}
	if _, err := source.source(); err != nil {
		return nil, err
	}
	return oauth2.ReuseTokenSource(nil, source), nil
}

// serviceAccount makes tokens with the Secret's key, which it reads again for each token.
type serviceAccount struct {
	ctx context.Context //nolint:containedctx // oauth2.TokenSource has none; it holds the HTTP client for Google
	dir string
}

// source reads the key.
func (s serviceAccount) source() (oauth2.TokenSource, error) {
	key, err := readKey(s.dir, destination.KeyServiceAccount)
	if err != nil {
		return nil, err
	}
	parsed, err := google.JWTConfigFromJSON([]byte(key), gcsScope)
	if err != nil {
		return nil, errors.New("read " + destination.KeyServiceAccount + ": it is not the key of a Google service account in JSON")
	}
	return parsed.TokenSource(s.ctx), nil
}

// Token implements oauth2.TokenSource.
func (s serviceAccount) Token() (*oauth2.Token, error) {
	source, err := s.source()
	if err != nil {
		return nil, &credentialsError{cause: err}
	}
	return source.Token()
}

// podIdentity makes tokens for the identity that the Pod runs as. It looks for the identity when the first token is needed.
type podIdentity struct {
	ctx context.Context //nolint:containedctx // as above
}

// Token implements oauth2.TokenSource.
func (p podIdentity) Token() (*oauth2.Token, error) {
	found, err := google.FindDefaultCredentials(p.ctx, gcsScope)
	if err != nil {
		return nil, &credentialsError{cause: err}
	}
	return found.TokenSource.Token()
}

// bearer sends a token instead of a signature, and drops the headers that belong to the signature.
type bearer struct {
	tokens oauth2.TokenSource
	base   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := b.tokens.Token()
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	for name := range request.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") || strings.HasPrefix(lower, "amz-sdk-") {
			request.Header.Del(name)
		}
	}
	token.SetAuthHeader(request)
	return b.base.RoundTrip(request)
}
