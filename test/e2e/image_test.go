package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

// loadProgram builds a Go program of this repository and brings it to the dev cluster's nodes as an image of this name, which holds nothing
// else. flags are for go build. On a cluster whose images come from elsewhere the test is skipped.
func loadProgram(t *testing.T, kubeconfig, program, image string, flags ...string) {
	t.Helper()
	if !kube.IsDevCluster(kubeconfig) {
		t.Skipf("image %s can only be loaded into the dev cluster, and %s is not its kubeconfig", image, kubeconfig)
	}
	work := t.TempDir()
	binary := filepath.Join(work, filepath.Base(program))
	build := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-o", binary}, flags, []string{program})...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", program, err, output)
	}
	archive := filepath.Join(work, "image.tar")
	if err := writeArchive(archive, binary, image); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Load(t.Context(), filepath.Dir(kubeconfig), archive, nil, io.Discard); err != nil {
		t.Fatal(err)
	}
}

// file is an entry of a tar archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// writeArchive writes an image of one static binary in the form of docker save.
func writeArchive(archive, binary, image string) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("pack image %s: %w", image, err)
	}
	name := "usr/bin/" + filepath.Base(binary)
	layer, err := tarOf(file{name, 0o755, program})
	if err != nil {
		return fmt.Errorf("pack image %s: %w", image, err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + name}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return fmt.Errorf("pack image %s: %w", image, err)
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{image}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return fmt.Errorf("pack image %s: %w", image, err)
	}
	content, err := tarOf(file{"manifest.json", 0o644, manifest}, file{"config.json", 0o644, config}, file{"layer.tar", 0o644, layer})
	if err != nil {
		return fmt.Errorf("pack image %s: %w", image, err)
	}
	return os.WriteFile(archive, content, 0o600)
}

func tarOf(files ...file) ([]byte, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for _, one := range files {
		if err := writer.WriteHeader(&tar.Header{Name: one.name, Mode: one.mode, Size: int64(len(one.content)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := writer.Write(one.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}
