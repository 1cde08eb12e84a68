package archive

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

// Location says where a backup's own folder is and how to reach it.
type Location struct {
	// URL is s3://bucket/folder?region=…&endpoint=https://…&use_path_style=true, gs://bucket/folder,
	// azblob://container/folder?storage_account=…, or file:///folder.
	URL string
	// CredentialsDir has the destination's Secret as files: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION;
	// service-account.json (gs); AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN; for any of them ca.crt (a custom CA),
	// endpoint and endpoints (see destination.CheckEndpoint).
	// Empty, or a folder without them, uses the identity of the Pod.
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

// tuning is how patient a Store is. Tests are less so.
type tuning struct {
	// attempts is how often a request is sent in all, until it has success.
	attempts int
	// pause is the first wait between two of them; each next one is twice as long, up to longest.
	pause, longest time.Duration
	// piece is how many bytes of an object are sent at a time: what has to be sent again is in memory.
	piece int
	// stall is for how long a connection may move no byte at all before it is given up.
	stall time.Duration
}

// backoff is how long to wait after so many tries.
func (t tuning) backoff(tries int) time.Duration {
	wait := t.pause
	for range tries - 1 {
		wait = min(wait*2, t.longest)
	}
	return wait
}

// patient is for production: a request is given up after half a minute of failures that come at once, or after six stalls.
func patient() tuning {
	return tuning{attempts: 6, pause: time.Second, longest: 20 * time.Second, piece: uploadPiece, stall: time.Minute}
}

// Open makes a Store. It reaches the destination only as far as finding credentials takes. Errors: *destination.StoreError.
func Open(ctx context.Context, location Location) (*Store, error) {
	return open(ctx, location, patient())
}

func open(ctx context.Context, location Location, tuning tuning) (*Store, error) {
	place, err := destination.Parse(location.URL)
	if err != nil {
		return nil, &destination.StoreError{Kind: destination.KindInvalid, Op: "read the destination's URL", Err: err}
	}
	store := &Store{url: place.String(), tuning: tuning}
	if err := openPlace(ctx, store, location, place); err != nil {
		return nil, destination.Opening(err, store.url)
	}
	return store, nil
}

// openPlace fills in how a kind of store is reached.
func openPlace(ctx context.Context, store *Store, location Location, place destination.Place) error {
	if place.Scheme == "file" {
		return openVolume(store, location, place)
	}
	if err := location.mayReach(place); err != nil {
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

// mayReach is destination.CheckEndpoint, with what the Secret has now.
func (l Location) mayReach(place destination.Place) error {
	keys, err := readKeys(l.CredentialsDir, destination.EndpointKeys()...)
	if err != nil {
		return err
	}
	return destination.CheckAudience(place, keys)
}

// URL is the folder's, without the options.
func (s *Store) URL() string { return s.url }

// Close ends the store's connections.
func (s *Store) Close() error {
	if s.release == nil {
		return nil
	}
	return s.release()
}
