package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	path := filepath.Join(dir, "admin.key")
	for _, content := range []string{"first", "second"} {
		if err := Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("read %q, want %q: %v", got, content, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder contains %v: %v", left, err)
	}
}

// A secret must not get the mode of a file that a killed run left.
func TestWriteAfterAKilledRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "admin.key")
	if err := os.WriteFile(path+".new", []byte("half a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
}

func TestWriteFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "state.json", "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "state.json"), nil, 0o644); err == nil {
		t.Error("a folder was replaced by a file")
	}
}
