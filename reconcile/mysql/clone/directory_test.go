package clone

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newDirectory(t *testing.T) (*Directory, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "data")
	directory, err := NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := directory.Close(); err != nil {
			t.Error(err)
		}
	})
	return directory, root
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	directory, root := newDirectory(t)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(directory.Write(File{Name: "a/t.ibd", Size: 10}, 2, []byte("23")))
	do(directory.Write(File{Name: "empty", Size: 3}, 0, nil))
	do(directory.Write(File{Name: "a/t.ibd", Size: 10}, 3, []byte("!4")))
	do(directory.Write(File{Name: "a/t.ibd", Size: 10}, 12, nil))
	do(directory.Rename("a/t.ibd", "b/u.ibd"))
	do(directory.Write(File{Name: "b/u.ibd", Size: 10}, 0, []byte("0")))
	do(directory.Write(File{Name: "gone", Size: 3}, 0, []byte("x")))
	do(directory.Remove("gone"))
	if begun, err := InProgress(root); !begun || err != nil {
		t.Errorf("in progress: %t (%v)", begun, err)
	}
	do(directory.Finish())
	if begun, err := InProgress(root); begun || err != nil {
		t.Errorf("finished, and in progress: %t (%v)", begun, err)
	}
	want := map[string]string{"b/u.ibd": "0\x002!4\x00\x00\x00\x00\x00\x00\x00", "empty": "\x00\x00\x00", fixFile: "", replaceFile: ""}
	got := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(listing(t, root))) {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			got[name] = string(data)
		}
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}

func TestDirectoryRefuses(t *testing.T) {
	t.Parallel()
	directory, root := newDirectory(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../out", "/out", "link/out"} {
		if err := directory.Write(File{Name: name}, 0, []byte("x")); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	for _, name := range []string{"a", "b"} {
		if err := directory.Write(File{Name: name}, 0, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := directory.Rename("a", "b"); err == nil {
		t.Error("a file is overwritten by renaming")
	}
	if err := directory.Remove("c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removing a missing file: %v", err)
	}
	if _, err := NewDirectory(root); err == nil {
		t.Error("a second copy begins in the same place")
	}
}

// TestFilesHaveNoHoles: mysqld crashes when it fills a hole on a full volume.
func TestFilesHaveNoHoles(t *testing.T) {
	t.Parallel()
	const size, grown = 1 << 20, 3 << 20
	directory, root := newDirectory(t)
	if err := errors.Join(
		directory.Write(File{Name: "undo_001", Size: size}, size/2, []byte("x")),
		directory.Write(File{Name: "undo_001", Size: size}, grown, nil),
	); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(root, "undo_001"))
	if err != nil {
		t.Fatal(err)
	}
	if taken := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != grown || taken < grown {
		t.Errorf("it is %d bytes long and takes %d, want %d", info.Size(), taken, grown)
	}
}
