// Package images stores container images on disk in the OCI image layout and serves them to the nodes over the registry protocol.
//
// A dev cluster pulls from no real registry. But it is not enough to have an image on the node: kubelet asks the registry for each pod with
// imagePullPolicy Always, which is also the default of every image tagged latest. Each node's containerd therefore uses this registry as
// the mirror of every other, and pulls succeed or fail as with a real one.
package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Store is an OCI image layout in a folder. Several processes may use it at the same time: a writer holds its lock from the first blob
// until the images have names, and the index is replaced atomically for readers.
type Store struct {
	dir string
}

// OpenStore opens the store in a folder, and creates it if needed.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, v1.ImageBlobsDir, string(digest.SHA256)), 0o755); err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	layout, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	if err := replaceFile(filepath.Join(dir, v1.ImageLayoutFile), layout); err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	return &Store{dir: dir}, nil
}

// Normalize completes an image name as container runtimes do: "mysql" is
// "docker.io/library/mysql:latest".
func Normalize(name string) (string, error) {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", fmt.Errorf("read image name %q: %w", name, err)
	}
	return ref.String(), nil
}

// Manifest returns the manifest of the image with this full name, and whether there is one.
func (s *Store) Manifest(ref string) (v1.Descriptor, bool, error) {
	index, err := s.index()
	if err != nil {
		return v1.Descriptor{}, false, err
	}
	for _, m := range index.Manifests {
		if m.Annotations[v1.AnnotationRefName] == ref {
			return m, true, nil
		}
	}
	return v1.Descriptor{}, false, nil
}

// BlobPath returns the path for the blob with this digest.
func (s *Store) BlobPath(d digest.Digest) string {
	return filepath.Join(s.dir, v1.ImageBlobsDir, string(d.Algorithm()), d.Encoded())
}

// named is an image and its future full names.
type named struct {
	manifest v1.Descriptor
	refs     []string
}

// tag gives the images their names, removes these names from other images, and then removes blobs that no name reaches. The caller must
// hold the lock.
func (s *Store) tag(images []named) error {
	index, err := s.index()
	if err != nil {
		return err
	}
	for _, image := range images {
		index.Manifests = slices.DeleteFunc(index.Manifests, func(m v1.Descriptor) bool {
			return slices.Contains(image.refs, m.Annotations[v1.AnnotationRefName])
		})
		for _, ref := range image.refs {
			manifest := image.manifest
			manifest.Annotations = map[string]string{v1.AnnotationRefName: ref}
			index.Manifests = append(index.Manifests, manifest)
		}
	}
	content, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return fmt.Errorf("write image index: %w", err)
	}
	if err := replaceFile(filepath.Join(s.dir, v1.ImageIndexFile), content); err != nil {
		return fmt.Errorf("write image index: %w", err)
	}
	return s.prune(index)
}

// prune removes the blobs that no manifest of the index needs, and the files of interrupted writers: there is no other writer now.
func (s *Store) prune(index v1.Index) error {
	needed := map[string]bool{}
	for _, m := range index.Manifests {
		manifest, err := s.readManifest(m.Digest)
		if err != nil {
			return err
		}
		needed[m.Digest.Encoded()] = true
		needed[manifest.Config.Digest.Encoded()] = true
		for _, layer := range manifest.Layers {
			needed[layer.Digest.Encoded()] = true
		}
	}
	dir := filepath.Join(s.dir, v1.ImageBlobsDir, string(digest.SHA256))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("prune image store: %w", err)
	}
	for _, e := range entries {
		if needed[e.Name()] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("prune image store: %w", err)
		}
	}
	return s.removeUnfinished()
}

// unfinished is the prefix of a blob's file until its digest is known.
const unfinished = "blob-"

func (s *Store) removeUnfinished() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("prune image store: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), unfinished) {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
			return fmt.Errorf("prune image store: %w", err)
		}
	}
	return nil
}

func (s *Store) readManifest(d digest.Digest) (v1.Manifest, error) {
	var manifest v1.Manifest
	content, err := os.ReadFile(s.BlobPath(d))
	if err != nil {
		return manifest, fmt.Errorf("read image manifest: %w", err)
	}
	if err := json.Unmarshal(content, &manifest); err != nil {
		return manifest, fmt.Errorf("read image manifest %s: %w", d, err)
	}
	return manifest, nil
}

func (s *Store) index() (v1.Index, error) {
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	content, err := os.ReadFile(filepath.Join(s.dir, v1.ImageIndexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return index, nil
	}
	if err != nil {
		return index, fmt.Errorf("read image index: %w", err)
	}
	if err := json.Unmarshal(content, &index); err != nil {
		return index, fmt.Errorf("read image index: %w", err)
	}
	return index, nil
}

// writeBlob stores the content under its digest. The caller must hold the lock until a name refers to the blob.
func (s *Store) writeBlob(content io.Reader) (digest.Digest, int64, error) {
	file, err := os.CreateTemp(s.dir, unfinished+"*")
	if err != nil {
		return "", 0, fmt.Errorf("write blob: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	sum := digest.SHA256.Digester()
	size, err := io.Copy(io.MultiWriter(file, sum.Hash()), content)
	if err != nil {
		return "", 0, fmt.Errorf("write blob: %w", err)
	}
	if err := file.Chmod(0o644); err != nil {
		return "", 0, fmt.Errorf("write blob: %w", err)
	}
	if err := os.Rename(file.Name(), s.BlobPath(sum.Digest())); err != nil {
		return "", 0, fmt.Errorf("write blob: %w", err)
	}
	return sum.Digest(), size, nil
}

func (s *Store) writeJSON(value any) (digest.Digest, int64, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return "", 0, fmt.Errorf("write blob: %w", err)
	}
	return s.writeBlob(strings.NewReader(string(content)))
}

// lock makes a second writer wait. The kernel releases the lock if the process dies.
func (s *Store) lock() (func(), error) {
	file, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock image store: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock image store: %w", err)
	}
	return func() { file.Close() }, nil
}

// replaceFile replaces a file atomically: readers never see a part of it.
func replaceFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
