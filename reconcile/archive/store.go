package archive

import (
	"context"
	"errors"
)

// Location says where a backup's own folder is and how to reach it.
type Location struct {
	// URL is s3://bucket/folder?region=…&endpoint=https://…&use_path_style=true, gs://bucket/folder, azblob://container/folder, or
	// file:///folder.
	URL string
	// CredentialsDir has the destination's Secret as files: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION;
	// service-account.json (gs); AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN; ca.crt (a custom CA, for any).
	// Empty, or a folder without them, uses the identity of the Pod.
	CredentialsDir string
	// VolumeDir is the directory that a file URL is relative to; empty means the root of the file system.
	VolumeDir string
}

// Store is a folder in a bucket or in a volume.
type Store struct {
	url string
}

// Open makes a Store. It reaches the destination only as far as finding credentials takes. Errors: *StoreError.
func Open(ctx context.Context, location Location) (*Store, error) {
	return nil, errors.ErrUnsupported
}

// URL is the folder's, as it was given to Open.
func (s *Store) URL() string { return s.url }

// Close ends the store's connections.
func (s *Store) Close() error { return nil }
