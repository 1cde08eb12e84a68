package archive

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

const (
	// azurePolynomial is the polynomial of Azure's CRC-64.
	azurePolynomial = 0x9A6C9329AC4BC9B5
)

// azureBucket is a folder in a container of Azure Blob Storage. Azure itself deletes the blocks of interrupted uploads after a week ("Put
// Block").
type azureBucket struct {
	client *container.Client
	place  destination.Place
	// pieceSize is how many bytes are sent at a time.
	pieceSize int64
}

// openAzure opens a Store on a container.
func openAzure(_ context.Context, store *Store, location Location, place destination.Place) error {
	client, err := httpClient(location, store.tuning)
	if err != nil {
		return err
	}
	keys, err := readKeys(location.CredentialsDir, destination.KeyAccount, destination.KeyAccountKey, destination.KeySAS)
	if err != nil {
		return err
	}
	account := firstOf(place.Option(destination.OptionAccount), keys[destination.KeyAccount], os.Getenv(destination.KeyAccount))
	if err := checkAccount(account); err != nil {
		return err
	}
	endpoint := place.Option("endpoint")
	address := firstOf(strings.TrimSuffix(endpoint, "/"), "https://"+account+".blob.core.windows.net") + "/" + url.PathEscape(place.Bucket)
	options := azcore.ClientOptions{
		Transport: redactingTransport{client.Transport}, Retry: azureRetries(store.tuning), PerCallPolicies: []policy.Policy{checksums{}},
	}
	var made *container.Client
	switch {
	case keys[destination.KeyAccountKey] != "":
		made, err = withAccountKey(address, account, keys[destination.KeyAccountKey], options)
	case keys[destination.KeySAS] != "":
		made, err = withSignature(address, keys[destination.KeySAS], options)
	default:
		made, err = withPodIdentity(address, options)
	}
	if err != nil {
		return err
	}
	store.bucket, store.classify, store.release = azureBucket{client: made, place: place, pieceSize: int64(store.tuning.piece)}, httpKind, closer(client)
	return nil
}

// checkAccount refuses an invalid name of a storage account (Azure documentation, "Storage account overview"), because it becomes part of a
// host name.
func checkAccount(account string) error {
	if account == "" {
		return fmt.Errorf("no storage account: add ?%s=… to the URL, or %s to the Secret", destination.OptionAccount, destination.KeyAccount)
	}
	if !regexp.MustCompile(`^[a-z0-9]{3,24}$`).MatchString(account) {
		return fmt.Errorf("%q is not the name of a storage account: a name has 3 to 24 lower-case letters and digits", account)
	}
	return nil
}

func azureRetries(tuning tuning) policy.RetryOptions {
	return policy.RetryOptions{
		MaxRetries: int32(tuning.attempts - 1), //nolint:gosec // a handful
		RetryDelay: tuning.pause, MaxRetryDelay: tuning.longest, ShouldRetry: azurePasses,
	}
}

// azurePasses reports whether a request must be sent again: after the statuses that the SDK repeats by default, after no answer, and if the
// store received damaged content. The SDK does not repeat the last by itself.
func azurePasses(response *http.Response, err error) bool {
	if err != nil {
		return true
	}
	switch response.Header.Get("X-Ms-Error-Code") {
	case "Crc64Mismatch", "Md5Mismatch":
		return true
	}
	return runtime.HasStatusCode(response, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
}

func withAccountKey(address, account, key string, options azcore.ClientOptions) (*container.Client, error) {
	credential, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, errors.New("read credentials: " + destination.KeyAccountKey + " is not the key of a storage account")
	}
	return container.NewClientWithSharedKeyCredential(address, credential, &container.ClientOptions{ClientOptions: options})
}

func withSignature(address, token string, options azcore.ClientOptions) (*container.Client, error) {
	whole := address + "?" + strings.TrimPrefix(token, "?")
	if _, err := url.Parse(whole); err != nil {
		return nil, errors.New("read credentials: " + destination.KeySAS + " is not a shared access signature") // the cause would contain it
	}
	return container.NewClientWithNoCredential(whole, &container.ClientOptions{ClientOptions: options})
}

// withPodIdentity uses workload identity, or the node's managed identity.
func withPodIdentity(address string, options azcore.ClientOptions) (*container.Client, error) {
	credential, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options})
	if err != nil {
		return nil, fmt.Errorf("find the identity of the Pod: %w", err)
	}
	return container.NewClient(address, explainedTokens{credential}, &container.ClientOptions{ClientOptions: options})
}

// explainedTokens marks errors of finding an identity.
type explainedTokens struct{ azcore.TokenCredential }

// GetToken implements azcore.TokenCredential.
func (e explainedTokens) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := e.TokenCredential.GetToken(ctx, options)
	if err != nil {
		return token, &credentialsError{cause: err}
	}
	return token, nil
}

func (b azureBucket) put(ctx context.Context, name string, body io.Reader) error {
	_, err := b.blob(name).UploadStream(ctx, body, &blockblob.UploadStreamOptions{BlockSize: b.pieceSize, Concurrency: uploadsAtOnce})
	return err
}

// checksums adds the CRC to every body that is sent: blobs, blocks, and lists of blocks, for which the SDK has no option. The store refuses
// a body that arrives with another CRC ("Put Block List": x-ms-content-crc64).
type checksums struct{}

// Do implements policy.Policy.
func (checksums) Do(request *policy.Request) (*http.Response, error) {
	if request.Body() == nil {
		return request.Next()
	}
	sum := crc64.New(crc64.MakeTable(azurePolynomial))
	if _, err := io.Copy(sum, request.Body()); err != nil {
		return nil, err
	}
	if err := request.RewindBody(); err != nil {
		return nil, err
	}
	var encoded [8]byte
	binary.LittleEndian.PutUint64(encoded[:], sum.Sum64())
	request.Raw().Header.Set("X-Ms-Content-Crc64", base64.StdEncoding.EncodeToString(encoded[:]))
	return request.Next()
}

func (b azureBucket) get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	found, err := b.blob(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset}})
	code, status := answer(err)
	switch {
	case err == nil:
		return found.Body, nil
	case code == "BlobNotFound":
		return nil, errMissing(name)
	case status == http.StatusRequestedRangeNotSatisfiable:
		return http.NoBody, nil // everything was read before
	}
	return nil, err
}

func (b azureBucket) list(ctx context.Context) ([]object, error) {
	prefix := b.place.Key("") + "/"
	if b.place.Folder == "" {
		prefix = ""
	}
	pages := b.client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix})
	var objects []object
	been := seenTokens{}
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if page.Segment == nil {
			return nil, errNoListing
		}
		for _, found := range page.Segment.BlobItems {
			if found.Name == nil || found.Properties == nil || found.Properties.ContentLength == nil {
				continue
			}
			objects = append(objects, object{name: strings.TrimPrefix(*found.Name, prefix), size: *found.Properties.ContentLength})
		}
		marker := ""
		if page.NextMarker != nil {
			marker = *page.NextMarker
		}
		if err := been.next(marker != "", marker); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (b azureBucket) remove(ctx context.Context, name string) error {
	_, err := b.blob(name).Delete(ctx, nil)
	if code, _ := answer(err); code == "BlobNotFound" {
		return nil
	}
	return err
}

func (b azureBucket) sweep(context.Context) error { return nil }

func (b azureBucket) blob(name string) *blockblob.Client {
	return b.client.NewBlockBlobClient(b.place.Key(name))
}
