package archive

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// benchBytes returns how many bytes each measurement processes: ARCHIVE_BENCH_MIB, default 256.
func benchBytes(b *testing.B) int64 {
	b.Helper()
	mebibytes, err := strconv.ParseInt(os.Getenv("ARCHIVE_BENCH_MIB"), 10, 64)
	if err != nil {
		mebibytes = 256
	}
	return mebibytes << 20
}

// pages returns 16 MiB that look like a table's file: pages of 16 KiB that are 15/16 full, with rows of numbers, times, words and a hash.
func pages() []byte {
	const page, total = 16 << 10, 16 << 20
	random := seeded(1)
	words := strings.Fields("order customer street invoice paid shipped returned berlin london paris gmbh limited open closed priority standard express note remark")
	content := make([]byte, 0, total)
	for id := uint64(1); len(content) < total; {
		one := make([]byte, 0, page)
		one = binary.BigEndian.AppendUint32(one, random.Uint32())
		one = append(one, make([]byte, 34)...)
		for len(one) < page*15/16-200 {
			one = binary.BigEndian.AppendUint64(one, id)
			one = binary.BigEndian.AppendUint64(one, 0x99b6<<48|id<<7)
			one = fmt.Appendf(one, "%s %s %d %s", words[random.IntN(len(words))], words[random.IntN(len(words))], random.IntN(10000), words[random.IntN(len(words))])
			one = binary.BigEndian.AppendUint64(one, random.Uint64())
			one = append(one, 0, 0, 0x10, 0, byte(id), 0)
			id++
		}
		content = append(content, one...)
		content = append(content, make([]byte, page-len(one))...)
	}
	return content
}

// BenchmarkPlain is the limit for the others: it only writes the same bytes through the same compressor into a file.
func BenchmarkPlain(b *testing.B) {
	data, size := pages(), benchBytes(b)
	measure(b, size, func(dir string) error {
		file, err := os.Create(filepath.Join(dir, "plain.zst"))
		if err != nil {
			return err
		}
		encoder, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(workers))
		if err != nil {
			return err
		}
		if _, err := io.Copy(encoder, &repeating{data: data, left: size}); err != nil {
			return err
		}
		if err := encoder.Close(); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		return file.Close()
	})
}

func BenchmarkWriter(b *testing.B) {
	data, size := pages(), benchBytes(b)
	measure(b, size, func(dir string) error { return benchBackup(b, dir, data, size, nil) })
}

func BenchmarkWriterEncrypted(b *testing.B) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		b.Fatal(err)
	}
	data, size := pages(), benchBytes(b)
	measure(b, size, func(dir string) error { return benchBackup(b, dir, data, size, []age.Recipient{identity.Recipient()}) })
}

func BenchmarkExtract(b *testing.B) {
	data, size := pages(), benchBytes(b)
	dir := b.TempDir()
	if err := benchBackup(b, dir, data, size, nil); err != nil {
		b.Fatal(err)
	}
	store, err := open(b.Context(), Location{URL: "file:///backup", VolumeDir: dir}, productionTuning())
	if err != nil {
		b.Fatal(err)
	}
	manifest, _, err := Load(b.Context(), store)
	if err != nil {
		b.Fatal(err)
	}
	measure(b, size, func(string) error { return Verify(b.Context(), store, manifest, ReadOptions{}) })
}

// benchBackup makes a backup of size bytes, in files of 64 MiB.
func benchBackup(b *testing.B, dir string, data []byte, size int64, recipients []age.Recipient) error {
	b.Helper()
	store, err := open(b.Context(), Location{URL: "file:///backup", VolumeDir: dir}, productionTuning())
	if err != nil {
		return err
	}
	writer, err := Begin(b.Context(), store, WriteOptions{Identity: owner("bench"), Recipients: recipients})
	if err != nil {
		return err
	}
	const fileSize, piece = 64 << 20, 1 << 20
	from := &repeating{data: data, left: size}
	buffer := make([]byte, piece)
	for offset := int64(0); offset < size; offset += piece {
		if _, err := io.ReadFull(from, buffer); err != nil {
			return err
		}
		file := clone.File{Name: fmt.Sprintf("shop/orders%d.ibd", offset/fileSize), Size: fileSize}
		if err := writer.Write(file, offset%fileSize, buffer); err != nil {
			return err
		}
	}
	if _, _, err = writer.Finish(b.Context(), manifestOf()); err != nil {
		return err
	}
	return store.Close()
}

// repeating returns the same bytes repeatedly.
type repeating struct {
	data []byte
	left int64
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), r.left)], r.data[r.at:])
	r.left, r.at = r.left-int64(n), (r.at+n)%len(r.data)
	return n, nil
}

// measure reports the rate per second and per second of processor time, which other processes do not change, and the peak of the process's
// memory.
func measure(b *testing.B, size int64, do func(dir string) error) {
	b.Helper()
	var stored int64
	used, began := processorTime(b), time.Now()
	for b.Loop() {
		dir := b.TempDir()
		if err := do(dir); err != nil {
			b.Fatal(err)
		}
		stored = sizeOf(b, dir)
	}
	mebibytes := float64(size) / (1 << 20) * float64(b.N)
	b.ReportMetric(mebibytes/time.Since(began).Seconds(), "MiB/s")
	b.ReportMetric(mebibytes/(processorTime(b)-used).Seconds(), "MiB/cpu-s")
	b.ReportMetric(float64(stored)/float64(size), "stored")
	b.ReportMetric(float64(peak(b))/(1<<20), "peak-MiB")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func peak(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Maxrss << 10
}

func sizeOf(b *testing.B, dir string) int64 {
	b.Helper()
	var sum int64
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}
