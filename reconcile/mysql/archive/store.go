package archive

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Location says where a backup's own folder is and how to reach it.
type Location struct {
	// URL is s3://bucket/folder?region=…&endpoint=https://…&use_path_style=true, gs://bucket/folder,
	// azblob://container/folder?storage_account=…, or file:///folder.
	URL string
	// CredentialsDir has the destination's Secret as files: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION;
	// service-account.json (gs); AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN; for any of them ca.crt (a custom CA),
	// endpoint and endpoints (see CheckEndpoint).
	// Empty, or a folder without them, uses the identity of the Pod.
	CredentialsDir string
	// VolumeDir is the directory that a file URL is relative to; empty means the root of the file system.
	VolumeDir string
}

// Store is a folder in a bucket or in a volume.
type Store struct {
	url      string
	bucket   bucket
	classify func(error) Kind
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

// Open makes a Store. It reaches the destination only as far as finding credentials takes. Errors: *StoreError.
func Open(ctx context.Context, location Location) (*Store, error) {
	return open(ctx, location, patient())
}

func open(ctx context.Context, location Location, tuning tuning) (*Store, error) {
	place, err := parseURL(location.URL)
	if err != nil {
		return nil, &StoreError{Kind: KindInvalid, Op: "read the destination's URL", Err: err}
	}
	store := &Store{url: place.String(), tuning: tuning}
	if err := openPlace(ctx, store, location, place); err != nil {
		return nil, opening(err, store.url)
	}
	return store, nil
}

// openPlace fills in how a kind of store is reached.
func openPlace(ctx context.Context, store *Store, location Location, place place) error {
	if place.scheme == "file" {
		return openVolume(store, location, place)
	}
	if err := location.mayReach(place); err != nil {
		return err
	}
	switch place.scheme {
	case "s3":
		return openS3(ctx, store, location, place)
	case "gs":
		return openGCS(ctx, store, location, place)
	default:
		return openAzure(ctx, store, location, place)
	}
}

// mayReach is CheckEndpoint, with what the Secret has now.
func (l Location) mayReach(place place) error {
	keys, err := readKeys(l.CredentialsDir, endpointKeys()...)
	if err != nil {
		return err
	}
	return checkAudience(place, keys)
}

// opening says what an error of opening a store means.
func opening(err error, where string) error {
	if _, ok := errors.AsType[*StoreError](err); ok {
		return err
	}
	kind := KindInvalid
	if _, ok := errors.AsType[*endpointError](err); ok {
		kind = KindEndpoint
	}
	return &StoreError{Kind: kind, Op: "open " + where, Err: err}
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

// place is a parsed URL.
type place struct {
	scheme, bucket string
	// folder is clean and has no slash at either end. It may be empty: the bucket itself.
	folder  string
	options url.Values
}

// String is the URL without options: what messages show.
func (p place) String() string { return p.scheme + "://" + p.bucket + "/" + p.folder }

// key is the name of one of the folder's objects in the bucket.
func (p place) key(name string) string { return path.Join(p.folder, name) }

// option is a value of the URL's query.
func (p place) option(name string) string { return p.options.Get(name) }

// optionsOf are the options that a scheme has.
func optionsOf(scheme string) ([]string, bool) {
	switch scheme {
	case "file":
		return nil, true
	case "s3":
		return []string{"region", "endpoint", "use_path_style"}, true
	case "gs":
		return []string{"endpoint"}, true
	case schemeAzure:
		return []string{optionAccount, "endpoint"}, true
	}
	return nil, false
}

// parseURL reads a destination's URL, and refuses what it does not understand: a mistyped option must not be left out silently.
func parseURL(text string) (place, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return place{}, fmt.Errorf("parse URL: %w", err)
	}
	allowed, known := optionsOf(parsed.Scheme)
	if !known {
		return place{}, fmt.Errorf("%q: the scheme is none of s3, gs, azblob, file", text)
	}
	if parsed.User != nil {
		return place{}, fmt.Errorf("%q: credentials belong in the Secret, not in the URL", parsed.Redacted())
	}
	options, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return place{}, fmt.Errorf("parse the options of the URL: %w", err)
	}
	for name := range options {
		if !slices.Contains(allowed, name) {
			return place{}, fmt.Errorf("%q: there is no option %q for %s URLs", text, name, parsed.Scheme)
		}
	}
	if (parsed.Host == "") != (parsed.Scheme == "file") {
		return place{}, fmt.Errorf("%q: write SCHEME://BUCKET/FOLDER, or file:///FOLDER", text)
	}
	if slices.Contains(strings.Split(parsed.Path, "/"), "..") || strings.Contains(parsed.Path, "\x00") || parsed.Fragment != "" {
		return place{}, fmt.Errorf("%q: the folder is not a plain path", text)
	}
	folder := strings.Trim(path.Clean("/"+parsed.Path), "/")
	return place{scheme: parsed.Scheme, bucket: parsed.Host, folder: folder, options: options}, nil
}
