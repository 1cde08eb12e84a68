package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Pack stores an image under the name. Its only file is a static binary, which is also its entry point.
func (s *Store) Pack(binary, name string) error {
	ref, err := Normalize(name)
	if err != nil {
		return err
	}
	layer, err := layerOf(binary)
	if err != nil {
		return fmt.Errorf("pack %s: %w", binary, err)
	}
	config, err := json.Marshal(configOf(binary, digest.FromBytes(layer)))
	if err != nil {
		return fmt.Errorf("pack %s: %w", binary, err)
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	blobs := map[string]blob{}
	for file, content := range map[string][]byte{"config": config, "layer": layer} {
		sum, size, err := s.writeBlob(bytes.NewReader(content))
		if err != nil {
			return fmt.Errorf("pack %s: %w", binary, err)
		}
		blobs[file] = blob{digest: sum, size: size}
	}
	manifest, err := s.writeManifest(archived{Config: "config", Layers: []string{"layer"}}, blobs)
	if err != nil {
		return fmt.Errorf("pack %s: %w", binary, err)
	}
	return s.tag([]named{{manifest: manifest, refs: []string{ref}}})
}

// layerOf returns a layer with the binary at its root. It sets no times, so that the same binary always gives the same layer.
func layerOf(binary string) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	writer := tar.NewWriter(&layer)
	header := &tar.Header{Name: filepath.Base(binary), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
	if err := writer.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return layer.Bytes(), nil
}

func configOf(binary string, layer digest.Digest) v1.Image {
	return v1.Image{
		Platform: v1.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config:   v1.ImageConfig{Entrypoint: []string{"/" + filepath.Base(binary)}, User: "65535:65535"},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer}},
	}
}
