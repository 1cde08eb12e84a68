package archive

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// Location is the folder of a backup and the way to reach it.
type Location struct {
	// URL is s3://bucket/folder?region=…&endpoint=https://…&use_path_style=true, gs://bucket/folder,
	// azblob://container/folder?storage_account=…, or file:///folder.
	URL string
	// CredentialsDir has the destination's Secret as files: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION;
	// service-account.json (gs); AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN; for any of them ca.crt (a custom CA),
	// endpoint and endpoints (see destination.CheckEndpoint). If it is empty or the files are missing, the identity of the Pod is used.
	CredentialsDir string
	// VolumeDir is the directory that a file URL is relative to; empty means the root of the file system.
	VolumeDir string
}

// Store is a folder in a bucket or in a volume.
type Store struct {
	url      string
	bucket   bucket
	classify func(error) destination.Kind
	release  func() error
	tuning   tuning
}

// tuning holds the numbers and times of retries. Tests use shorter ones.
type tuning struct {
	// attempts is the maximum number of times that a request is sent.
	attempts int
	// pause is the wait after the first attempt. Each further wait is twice as long, up to longest.
	pause, longest time.Duration
	// piece is how many bytes of an object are sent at a time. A piece stays in memory, so that it can be sent again.
	piece int
	// stall is how long a connection may transfer no byte before it is closed.
	stall time.Duration
}

// backoff returns how long to wait after so many tries.
func (t tuning) backoff(tries int) time.Duration {
	wait := t.pause
	for range tries - 1 {
		wait = min(wait*2, t.longest)
	}
	return wait
}

// productionTuning returns the tuning for production: a request fails after half a minute of failures without delay, or after six stalls.
func productionTuning() tuning {
	return tuning{attempts: 6, pause: time.Second, longest: 20 * time.Second, piece: uploadPiece, stall: time.Minute}
}

// Open makes a Store. It connects to the network only to find credentials. Errors: *destination.StoreError.
func Open(ctx context.Context, location Location) (*Store, error) {
	return open(ctx, location, productionTuning())
}

func open(ctx context.Context, location Location, tuning tuning) (*Store, error) {
	place, err := destination.Parse(location.URL)
	if err != nil {
		return nil, &destination.StoreError{Kind: destination.KindInvalid, Op: "read the destination's URL", Err: err}
	}
	store := &Store{url: place.String(), tuning: tuning}
	if err := openPlace(ctx, store, location, place); err != nil {
		return nil, destination.AsStoreError(err, store.url)
	}
	return store, nil
}

// openPlace opens the kind of store that the URL's scheme names.
func openPlace(ctx context.Context, store *Store, location Location, place destination.Place) error {
	if place.Scheme == "file" {
		return openVolume(store, location, place)
	}
	if err := location.checkEndpoint(place); err != nil {
		return err
	}
	switch place.Scheme {
	case "s3":
		return openS3(ctx, store, location, place)
	case "gs":
		return openGCS(ctx, store, location, place)
	default:
		return openAzure(ctx, store, location, place)
	}
}

// checkEndpoint calls destination.CheckAudience with the current keys of the Secret.
func (l Location) checkEndpoint(place destination.Place) error {
	keys, err := readKeys(l.CredentialsDir, destination.EndpointKeys()...)
	if err != nil {
		return err
	}
	return destination.CheckPlace(place, keys)
}

// URL returns the folder's URL without the options.
func (s *Store) URL() string { return s.url }

// Close ends the store's connections.
func (s *Store) Close() error {
	if s.release == nil {
		return nil
	}
	return s.release()
}
