package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
)

// manifestLimit is larger than any manifest: a backup of 300 TiB has a part for each line of about 200 bytes.
const manifestLimit = 64 << 20

// The file of a manifest is one JSON document in three pieces, each on lines of its own: the checksum, the text that the checksum covers,
// and a brace. Every byte outside of the second piece is fixed.
const (
	sealHead = `{"sha256":"`
	sealBody = `","manifest":` + "\n"
	sealTail = "}\n"
)

// Load reads the manifest of the backup in store, and checks that each part it names exists with the right size. The returned checksum is
// that of the manifest's file, as sha256:HEX; the manifest has the checksums of everything else. With an *IncompleteError, Load also
// returns the manifest if there is one. Errors: *NotFoundError, *IncompleteError, *CorruptError, *ForeignError, *destination.StoreError.
func Load(ctx context.Context, store *Store) (Manifest, string, error) {
	objects, err := store.list(ctx)
	if err != nil {
		return Manifest{}, "", err
	}
	content, err := store.read(ctx, manifestName, manifestLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, "", errorWithoutManifest(store, objects)
	}
	if err != nil {
		return Manifest{}, "", err
	}
	manifest, err := openManifest(content, store.url)
	if err != nil {
		return Manifest{}, "", err
	}
	return manifest, checksumOf(content), checkPartsExist(manifest, objects, store.url)
}

// errorWithoutManifest returns the error for a folder without a manifest.
func errorWithoutManifest(store *Store, objects []object) error {
	for _, one := range objects {
		if isArchiveFile(one.name) {
			return &IncompleteError{URL: store.url, Reason: "it was started but never finished: there is no " + manifestName}
		}
	}
	return &NotFoundError{URL: store.url}
}

// checkPartsExist checks that all parts that a manifest names are stored.
func checkPartsExist(manifest Manifest, objects []object, url string) error {
	sizes := make(map[string]int64, len(objects))
	for _, one := range objects {
		sizes[one.name] = one.size
	}
	for _, part := range manifest.Parts {
		size, found := sizes[part.Name]
		if !found {
			return &IncompleteError{URL: url, Reason: part.Name + " is missing"}
		}
		if size != part.Size {
			return &IncompleteError{URL: url, Reason: fmt.Sprintf("%s has %d bytes and should have %d", part.Name, size, part.Size)}
		}
	}
	return nil
}

// sealManifest makes the manifest's file.
func sealManifest(manifest Manifest) ([]byte, error) {
	inner, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	inner = append(inner, '\n')
	sum := sha256.Sum256(inner)
	return []byte(sealHead + hex.EncodeToString(sum[:]) + sealBody + string(inner) + sealTail), nil
}

// openManifest reads the manifest's file.
func openManifest(content []byte, url string) (Manifest, error) {
	inner, err := unseal(content)
	if err != nil {
		return Manifest{}, &CorruptError{URL: url, Reason: fmt.Sprintf("read %s: %v", manifestName, err)}
	}
	var head struct {
		Format  int    `json:"format"`
		Product string `json:"product"`
	}
	if err := json.Unmarshal(inner, &head); err != nil {
		return Manifest{}, &CorruptError{URL: url, Reason: fmt.Sprintf("decode %s: %v", manifestName, err)}
	}
	if head.Product != Product {
		return Manifest{}, &ForeignError{URL: url, Reason: fmt.Sprintf("it was written by %q, not by %s", head.Product, Product)}
	}
	if head.Format > Format {
		return Manifest{}, &ForeignError{URL: url, Reason: fmt.Sprintf("its format is %d; this release reads formats up to %d: use a newer release", head.Format, Format)}
	}
	var manifest Manifest
	if err := json.Unmarshal(inner, &manifest); err != nil {
		return Manifest{}, &CorruptError{URL: url, Reason: fmt.Sprintf("decode %s: %v", manifestName, err)}
	}
	if err := check(manifest); err != nil {
		return Manifest{}, &CorruptError{URL: url, Reason: fmt.Sprintf("%s is invalid: %v", manifestName, err)}
	}
	return manifest, nil
}

// unseal returns the text that the checksum covers, if the checksum is right.
func unseal(content []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(content, []byte(sealHead))
	if !ok || len(rest) < hex.EncodedLen(sha256.Size) {
		return nil, errors.New("it does not begin with a checksum")
	}
	sum, rest := rest[:hex.EncodedLen(sha256.Size)], rest[hex.EncodedLen(sha256.Size):]
	inner, ok := bytes.CutPrefix(rest, []byte(sealBody))
	if !ok {
		return nil, errors.New("no manifest follows the checksum")
	}
	inner, ok = bytes.CutSuffix(inner, []byte(sealTail))
	if !ok {
		return nil, errors.New("it is truncated")
	}
	actual := sha256.Sum256(inner)
	if hex.EncodeToString(actual[:]) != string(sum) {
		return nil, errors.New("its checksum does not match its content")
	}
	return inner, nil
}

// checksumOf returns the checksum of a manifest's file.
func checksumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// check refuses a manifest that cannot be read safely, also if this program wrote it.
func check(manifest Manifest) error {
	if manifest.Format < 1 {
		return fmt.Errorf("unknown format %d", manifest.Format)
	}
	if manifest.Backup.UID == "" {
		return errors.New("the UID of the MySQLBackupInstance is missing")
	}
	if manifest.Compression != compression {
		return fmt.Errorf("unknown compression %q", manifest.Compression)
	}
	if scheme := manifest.Encryption.Scheme; scheme != "" && scheme != encryptionScheme {
		return fmt.Errorf("unknown encryption %q", scheme)
	}
	return checkParts(manifest)
}

// checkParts refuses invalid parts.
func checkParts(manifest Manifest) error {
	partName := regexp.MustCompile(`^part-\d{5,}-[0-9a-f]{8}\.tar\.zst(\.age)?$`)
	hash := regexp.MustCompile(`^[0-9a-f]{64}$`)
	if len(manifest.Parts) == 0 {
		return errors.New("it has no parts")
	}
	names := make(map[string]bool, len(manifest.Parts))
	var raw int64
	for _, part := range manifest.Parts {
		if !partName.MatchString(part.Name) || names[part.Name] {
			return fmt.Errorf("invalid or repeated part name %q", part.Name)
		}
		if part.Size < 1 || part.Chunks < 1 || part.Raw < 1 || !hash.MatchString(part.SHA256) {
			return fmt.Errorf("%s: invalid size, number of chunks, or checksum", part.Name)
		}
		names[part.Name] = true
		raw += part.Raw
	}
	if raw != manifest.Data.Raw {
		return fmt.Errorf("its parts have %d bytes, not %d", raw, manifest.Data.Raw)
	}
	return nil
}
