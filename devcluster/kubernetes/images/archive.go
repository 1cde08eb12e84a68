package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// archived is one entry of a docker-archive's manifest.json, as "docker save"
// and "buildah push … docker-archive:" write it.
type archived struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// Load stores the images of a docker-archive and returns their full names: those in the archive and, if it has one image, the extra names.
// Layers are stored as they are in the archive, so the same archive always gives the same digests.
func (s *Store) Load(archive string, extra []string) ([]string, error) {
	list, links, err := readArchiveManifest(archive)
	if err != nil {
		return nil, err
	}
	if len(extra) > 0 && len(list) != 1 {
		return nil, fmt.Errorf("load %s: it contains %d images, so extra names are ambiguous", archive, len(list))
	}
	refs := make([][]string, len(list))
	for i, image := range list {
		if refs[i], err = normalizeAll(append(image.RepoTags, extra...)); err != nil {
			return nil, err
		}
		if len(refs[i]) == 0 {
			return nil, fmt.Errorf("load %s: its image has no name: add one after the file", archive)
		}
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	blobs, err := s.extract(archive, list, links)
	if err != nil {
		return nil, err
	}
	images := make([]named, len(list))
	for i, image := range list {
		if images[i].manifest, err = s.writeManifest(image, blobs); err != nil {
			return nil, err
		}
		images[i].refs = refs[i]
	}
	return slices.Concat(refs...), s.tag(images)
}

func normalizeAll(names []string) ([]string, error) {
	var refs []string
	for _, name := range names {
		ref, err := Normalize(name)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// readArchiveManifest reads the archive's manifest and its links: in older archives, a layer that occurs twice is a link the second time.
func readArchiveManifest(archive string) ([]archived, map[string]string, error) {
	var list []archived
	links := map[string]string{}
	err := eachFile(archive, func(header *tar.Header, content io.Reader) error {
		name := path.Clean(header.Name)
		switch {
		case header.Typeflag == tar.TypeSymlink:
			links[name] = path.Join(path.Dir(name), header.Linkname)
		case header.Typeflag == tar.TypeLink:
			links[name] = path.Clean(header.Linkname)
		case name == "manifest.json":
			return json.NewDecoder(content).Decode(&list)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("load %s: it contains no image: write it with \"docker save\" or \"buildah push IMAGE docker-archive:FILE\"", archive)
	}
	return list, links, nil
}

// blob is a file of the archive that was stored.
type blob struct {
	digest     digest.Digest
	size       int64
	compressed bool
}

// extract stores every layer and configuration the images name.
func (s *Store) extract(archive string, list []archived, links map[string]string) (map[string]blob, error) {
	wanted := map[string][]string{} // file in the archive → its names in the manifest
	for _, image := range list {
		for _, name := range append([]string{image.Config}, image.Layers...) {
			file := path.Clean(name)
			if target, linked := links[file]; linked {
				file = target
			}
			wanted[file] = append(wanted[file], name)
		}
	}
	blobs := map[string]blob{}
	err := eachFile(archive, func(header *tar.Header, content io.Reader) error {
		names := wanted[path.Clean(header.Name)]
		if header.Typeflag != tar.TypeReg || len(names) == 0 {
			return nil
		}
		buffered := bufio.NewReader(content)
		compressed := isGzip(buffered)
		sum, size, err := s.writeBlob(buffered)
		for _, name := range names {
			blobs[name] = blob{digest: sum, size: size, compressed: compressed}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for file, names := range wanted {
		if _, found := blobs[names[0]]; !found {
			return nil, fmt.Errorf("load %s: it names %q but does not contain it: the file is damaged or truncated", archive, file)
		}
	}
	return blobs, nil
}

// writeManifest stores the image's manifest in the format of registries.
func (s *Store) writeManifest(image archived, blobs map[string]blob) (v1.Descriptor, error) {
	config := blobs[image.Config]
	manifest := v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: config.digest, Size: config.size},
		Layers:    []v1.Descriptor{},
	}
	for _, name := range image.Layers {
		layer := blobs[name]
		mediaType := v1.MediaTypeImageLayer
		if layer.compressed {
			mediaType = v1.MediaTypeImageLayerGzip
		}
		manifest.Layers = append(manifest.Layers, v1.Descriptor{MediaType: mediaType, Digest: layer.digest, Size: layer.size})
	}
	sum, size, err := s.writeJSON(manifest)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: sum, Size: size}, nil
}

// eachFile calls visit for each entry of a tar file, compressed or not.
func eachFile(archive string, visit func(*tar.Header, io.Reader) error) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("open image archive: %w", err)
	}
	defer file.Close()
	buffered := bufio.NewReaderSize(file, 1<<20)
	var content io.Reader = buffered
	if isGzip(buffered) {
		if content, err = gzip.NewReader(buffered); err != nil {
			return fmt.Errorf("read %s: %w", archive, err)
		}
	}
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: it is not a tar archive: %w", archive, err)
		}
		if err := visit(header, reader); err != nil {
			return fmt.Errorf("read %s: %s: %w", archive, header.Name, err)
		}
	}
}

func isGzip(content *bufio.Reader) bool {
	magic, err := content.Peek(2)
	return err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b})
}
