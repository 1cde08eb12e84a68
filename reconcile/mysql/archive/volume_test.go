package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
)

func TestVolumeConforms(t *testing.T) {
	t.Parallel()
	conforms(t, volumeAt(t, t.TempDir()))
}

// If the volume is full at any point, the error says so, and nothing is left that could be taken for a backup.
func TestVolumeIsFull(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounts a small file system: needs root")
	}
	for _, size := range []string{"8k", "1m", "5m", "9m"} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
				t.Skipf("mount a small file system: %v", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, 0); err != nil {
					t.Errorf("unmount: %v", err)
				}
			})
			_, err := backUp(t.Context(), volumeAt(t, dir), WriteOptions{PartSize: 2 << 20}, 16<<20, tree{})
			var failed *destination.StoreError
			if !errors.As(err, &failed) || failed.Kind != destination.KindFull || !strings.Contains(err.Error(), "make room") {
				t.Errorf("back up: %v", err)
			}
			if files := filesOf(t, dir); len(files) > 0 {
				t.Errorf("left: %q", files)
			}
		})
	}
}

func TestVolumeRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(dir, "shop")); err != nil {
		t.Fatal(err)
	}
	var failed *destination.StoreError
	if _, err := Begin(t.Context(), volumeAt(t, dir), WriteOptions{Identity: owner("nightly")}); !errors.As(err, &failed) {
		t.Errorf("begin in a folder behind a symbolic link out of the volume: %v", err)
	}
	if _, err := Open(t.Context(), Location{URL: "file:///x", VolumeDir: filepath.Join(dir, "none")}); !errors.As(err, &failed) || failed.Kind != destination.KindNotFound {
		t.Errorf("open a volume that is not there: %v", err)
	}
}

// The file of an interrupted write is not listed, and the next attempt removes it.
func TestLeftoversOfAWriteAreSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := volumeAt(t, dir)
	if _, err := Begin(t.Context(), store, WriteOptions{Identity: owner("nightly")}); err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(dir, "shop/orders/nightly/part-00001-01234567.tar.zst"+partialSuffix)
	if err := os.WriteFile(leftover, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "shop/orders/nightly/thesis"+partialSuffix)
	if err := os.WriteFile(foreign, []byte("another user's"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, manifest := backedUp(t, store, WriteOptions{}, 1<<20)
	if files := filesOf(t, dir); len(files) != len(manifest.Parts)+3 {
		t.Errorf("left: %q", files)
	}
	if err := Remove(t.Context(), store, owner("nightly")); err != nil {
		t.Fatal(err)
	}
	if files := filesOf(t, dir); len(files) != 1 || files[0] != foreign {
		t.Errorf("left: %q", files)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "backups", "ftp://host/x", "s3:///folder", "s3://bucket/folder?regoin=x", "s3://key:secret@bucket/folder", "s3://bucket/a/../../b", "file://host/folder",
		"file:///", "file:///a/../../b", "s3://bucket/x?endpoint=minio:9000&region=x", "s3://bucket/x?use_path_style=yes&region=x", "azblob://container/x", "s3://bucket/x#y",
		"%zz", "s3://bucket/x?endpoint=ftp://x&region=x",
	} {
		var failed *destination.StoreError
		if _, err := Open(t.Context(), Location{URL: url, VolumeDir: t.TempDir()}); !errors.As(err, &failed) || failed.Kind != destination.KindInvalid {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// wait keeps to the rate, and ends with the context.
func TestLimit(t *testing.T) {
	t.Parallel()
	limited := newLimiter(1 << 20)
	began := time.Now()
	for range 16 {
		if err := limited.wait(t.Context(), 32<<10); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("512 KiB passed in %s at 1 MiB a second", took)
	}
	ended := errors.New("ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if err := newLimiter(1).wait(ctx, smallestStep); !errors.Is(err, ended) {
		t.Errorf("wait: %v", err)
	}
}
