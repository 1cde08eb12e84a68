package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// testTuning returns the tuning for tests: failures take little time.
func testTuning() tuning {
	return tuning{attempts: 3, pause: 10 * time.Millisecond, longest: 50 * time.Millisecond, piece: 5 << 20, stall: time.Second}
}

// nightlyIn returns the folder of volumeAt's store.
func nightlyIn(dir string) string { return filepath.Join(dir, "shop", "orders", "nightly") }

func owner(instance string) Identity {
	return Identity{Namespace: "shop", Cluster: "orders", Instance: instance, UID: "uid-of-" + instance}
}

// volumeAt opens a folder of a volume as a Store.
func volumeAt(t *testing.T, dir string) *Store {
	t.Helper()
	return opened(t, Location{URL: "file:///shop/orders/nightly", VolumeDir: dir})
}

// opened opens a store that does not stall. A busy machine may take seconds.
func opened(t *testing.T, location Location) *Store {
	t.Helper()
	patient := testTuning()
	patient.stall = time.Minute
	return openedWith(t, location, patient)
}

func openedWith(t *testing.T, location Location, tuning tuning) *Store {
	t.Helper()
	store, err := open(t.Context(), location, tuning)
	if err != nil {
		t.Fatalf("open %s: %v", location.URL, err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close %s: %v", location.URL, err)
		}
	})
	return store
}

// tree is a clone.Sink that keeps files in memory: the expected result of a copy.
type tree map[string][]byte

func (s tree) Write(file clone.File, offset int64, data []byte) error {
	content, exists := s[file.Name]
	if !exists {
		content = make([]byte, file.Size)
	}
	if end := int(offset) + len(data); end > len(content) {
		content = slices.Concat(content, make([]byte, end-len(content)))
	}
	copy(content[min(int(offset), len(content)):], data)
	s[file.Name] = content
	return nil
}

func (s tree) Rename(from, to string) error {
	content, exists := s[from]
	if !exists {
		return fmt.Errorf("rename %s: not there", from)
	}
	delete(s, from)
	s[to] = content
	return nil
}

func (s tree) Remove(name string) error {
	delete(s, name)
	return nil
}

func (s tree) size() int64 {
	var sum int64
	for _, content := range s {
		sum += int64(len(content))
	}
	return sum
}

// differs describes the first difference of two trees.
func (s tree) differs(other tree) string {
	names := slices.Sorted(maps.Keys(s))
	if others := slices.Sorted(maps.Keys(other)); !slices.Equal(names, others) {
		return fmt.Sprintf("files %q and %q", names, others)
	}
	for _, name := range names {
		if !bytes.Equal(s[name], other[name]) {
			return fmt.Sprintf("%s: %d and %d bytes, with different content", name, len(s[name]), len(other[name]))
		}
	}
	return ""
}

// both passes each call to two sinks.
type both struct{ first, second clone.Sink }

func (b both) Write(file clone.File, offset int64, data []byte) error {
	if err := b.first.Write(file, offset, data); err != nil {
		return err
	}
	return b.second.Write(file, offset, data)
}

func (b both) Rename(from, to string) error {
	if err := b.first.Rename(from, to); err != nil {
		return err
	}
	return b.second.Rename(from, to)
}

func (b both) Remove(name string) error {
	if err := b.first.Remove(name); err != nil {
		return err
	}
	return b.second.Remove(name)
}

// copyOf makes the calls of a small copy: first passes, then changes, then the redo log.
func copyOf(sink clone.Sink, random *rand.Rand, size int) error {
	const page = 16 << 10
	files := []clone.File{{Name: "ibdata1", Size: int64(size / 4)}, {Name: "shop/orders.ibd", Size: int64(size / 2)}, {Name: "#innodb_undo/undo_001", Size: int64(size / 4)}, {Name: "empty", Size: 0}}
	for _, file := range files {
		if file.Size == 0 {
			if err := sink.Write(file, 0, nil); err != nil {
				return err
			}
		}
		for offset := int64(0); offset < file.Size; offset += page {
			if err := sink.Write(file, offset, pageOf(random, int(min(page, file.Size-offset)))); err != nil {
				return err
			}
		}
	}
	for range 50 {
		file := files[random.IntN(3)]
		if err := sink.Write(file, page*random.Int64N(file.Size/page+1), pageOf(random, page)); err != nil {
			return err
		}
	}
	if err := sink.Rename("empty", "shop/empty.ibd"); err != nil {
		return err
	}
	// A file that grew at the donor: only its length is sent.
	if err := sink.Write(files[1], files[1].Size+4*page, nil); err != nil {
		return err
	}
	redo := clone.File{Name: "#innodb_redo/#ib_redo0", Size: 1 << 20}
	return sink.Write(redo, 0, pageOf(random, 100_000))
}

// pageOf makes bytes an eighth of which can be compressed.
func pageOf(random *rand.Rand, size int) []byte {
	content := make([]byte, size+8)
	for i := 0; i < size*7/8; i += 8 {
		binary.LittleEndian.PutUint64(content[i:], random.Uint64())
	}
	return content[:size]
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// manifestOf returns the fields that a caller of Finish fills in.
func manifestOf() Manifest {
	return Manifest{
		Source:   Source{Member: "orders-1", ServerVersion: "9.7.4", ServerUUID: "b1e1c1d0-0000-4000-8000-000000000001"},
		GTIDs:    GTIDs{AtLeast: "b1e1c1d0-0000-4000-8000-000000000001:1-10", AtMost: "b1e1c1d0-0000-4000-8000-000000000001:1-12"},
		Data:     Data{Bytes: 12345, Files: 5},
		Settings: map[string]string{"innodb_page_size": "16384"},
	}
}

// backedUp makes a complete backup and returns the files that Extract must restore.
func backedUp(t *testing.T, store *Store, options WriteOptions, size int) (tree, Manifest) {
	t.Helper()
	expected := tree{}
	manifest, err := backUp(t.Context(), store, options, size, expected)
	if err != nil {
		t.Fatalf("back up: %v", err)
	}
	return expected, manifest
}

// backUp makes a backup, and aborts it if it fails.
func backUp(ctx context.Context, store *Store, options WriteOptions, size int, expected clone.Sink) (Manifest, error) {
	if options.Identity.UID == "" {
		options.Identity = owner("nightly")
	}
	if options.PartSize == 0 {
		options.PartSize = int64(max(size/4, 1))
	}
	writer, err := Begin(ctx, store, options)
	if err != nil {
		return Manifest{}, err
	}
	err = copyOf(both{writer, expected}, seeded(uint64(size)), size)
	var manifest Manifest
	if err == nil {
		manifest, _, err = writer.Finish(ctx, manifestOf())
	}
	if err == nil {
		return manifest, nil
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	_ = writer.Abort(clean) // the tests check what it left
	return Manifest{}, err
}

// extracted restores a backup.
func extracted(t *testing.T, store *Store, manifest Manifest, identities ...age.Identity) tree {
	t.Helper()
	found := tree{}
	if err := Extract(t.Context(), store, manifest, ReadOptions{Identities: identities}, found); err != nil {
		t.Fatalf("extract: %v", err)
	}
	return found
}

// filesOf returns the paths of all files below a directory.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func newIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func testTime() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
