package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
)

// measureLimit copies the replica's data directory, at rest, through the compressor that backups use into a file, and flushes it: no backup
// that compresses so can be faster.
func (b *bench) measureLimit(ctx context.Context, m *measured) error {
	folder, err := b.folder(ctx, "data-"+source+"-1")
	if err != nil {
		return err
	}
	began, file := time.Now(), filepath.Join(b.scratch, "limit.tar.zst")
	stored, err := compressTo(file, func(w io.Writer) error { return tarFolder(filepath.Join(folder, "data"), w) })
	m.limit, m.limitStored = time.Since(began).Seconds(), stored
	return errors.Join(err, os.Remove(file))
}

// folder is where the dev cluster keeps a claim's volume on this machine.
func (b *bench) folder(ctx context.Context, claim string) (string, error) {
	volume, err := b.get(ctx, "persistentvolumeclaims/"+claim, "{.spec.volumeName}")
	if err != nil {
		return "", err
	}
	folder, err := b.kubectl.Run(ctx, "get", "persistentvolume", volume, "--output", "jsonpath={.spec.local.path}")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(folder); err != nil {
		return "", fmt.Errorf("find the volume of %s on this machine: %w", claim, err)
	}
	return folder, nil
}

// compressTo writes a file through the compressor, flushes it to disk, and returns its size in MiB.
func compressTo(file string, write func(io.Writer) error) (float64, error) {
	out, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	compressor, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return 0, err
	}
	if err := errors.Join(write(compressor), compressor.Close(), out.Sync()); err != nil {
		return 0, err
	}
	info, err := out.Stat()
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / mebibyte, nil
}

// tarFolder writes what a physical backup has: all files but logs, of which next to nothing is part of one, and temporary tablespaces.
func tarFolder(root string, w io.Writer) error {
	archive := tar.NewWriter(w)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || skipped(entry.Name()) {
			return err
		}
		return addFile(archive, root, path)
	})
	return errors.Join(err, archive.Close())
}

func skipped(name string) bool {
	for _, pattern := range []string{"binlog.*", "*-bin.*", "*relay*", "ibtmp*", "temp_*.ibt", "#ib_redo*"} {
		if matched, _ := filepath.Match(pattern, name); matched {
			return true
		}
	}
	return false
}

func addFile(archive *tar.Writer, root, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(archive, file, info.Size())
	return err
}
