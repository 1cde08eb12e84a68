package archive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

func TestBackupComesOutAsItWentIn(t *testing.T) {
	t.Parallel()
	identity := newIdentity(t)
	stories := map[string]struct {
		size       int
		options    WriteOptions
		identities []age.Identity
	}{
		"in one part":               {size: 1 << 20, options: WriteOptions{PartSize: 1 << 30}},
		"in many parts":             {size: 10 << 20, options: WriteOptions{PartSize: 1 << 20}},
		"encrypted":                 {size: 9 << 20, options: WriteOptions{PartSize: 2 << 20, Recipients: []age.Recipient{identity.Recipient()}}, identities: []age.Identity{newIdentity(t), identity}},
		"with a limit on bandwidth": {size: 1 << 20, options: WriteOptions{Limit: 64 << 20}},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := volumeAt(t, t.TempDir())
			expected, manifest := backedUp(t, store, story.options, story.size)
			loaded, checksum, err := Load(t.Context(), store)
			if err != nil || !strings.HasPrefix(checksum, "sha256:") {
				t.Fatalf("load: %q, %v", checksum, err)
			}
			if diff := cmp.Diff(manifest, loaded); diff != "" {
				t.Errorf("the manifest loaded is not the one returned:\n%s", diff)
			}
			if difference := extracted(t, store, loaded, story.identities...).differs(expected); difference != "" {
				t.Error(difference)
			}
			if err := Verify(t.Context(), store, loaded, ReadOptions{Identities: story.identities}); err != nil {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

// For any calls of a copy, the extracted files are those that the same calls make directly.
func TestAnyCopyComesOutAsItWentIn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(randomCopies) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			store := volumeAt(t, t.TempDir())
			writer, err := Begin(t.Context(), store, WriteOptions{Identity: owner("nightly"), PartSize: 200_000})
			if err != nil {
				t.Fatal(err)
			}
			expected := tree{}
			randomCalls(t, both{expected, writer}, seeded(seed), expected)
			manifest, _, err := writer.Finish(t.Context(), manifestOf())
			if err != nil {
				t.Fatal(err)
			}
			if difference := extracted(t, store, manifest).differs(expected); difference != "" {
				t.Error(difference)
			}
			if size := expected.size(); manifest.Data.Size != size {
				t.Errorf("the manifest says %d bytes, want %d", manifest.Data.Size, size)
			}
		})
	}
}

// randomCalls makes the calls that a donor could make, and others.
func randomCalls(t *testing.T, sink clone.Sink, random *rand.Rand, now tree) {
	t.Helper()
	names := []string{"a", "ibdata1", "shop/orders.ibd", "#innodb_redo/#ib_redo0", strings.Repeat("long/", 40) + "name.ibd"}
	sizes := map[string]int64{}
	var err error
	for range 30 + random.IntN(100) {
		name := names[random.IntN(len(names))]
		_, exists := now[name]
		if !exists {
			sizes[name] = random.Int64N(100_000)
		}
		switch action := random.IntN(11); {
		case action == 10:
			err = sink.Write(clone.File{Name: name, Size: sizes[name]}, random.Int64N(140_000), nil)
		case action < 7:
			data := pageOf(random, random.IntN(40_000))
			err = sink.Write(clone.File{Name: name, Size: sizes[name]}, random.Int64N(140_000), data)
		case action == 7:
			for offset := int64(0); offset < sizes[name] && err == nil; offset += 16 << 10 {
				err = sink.Write(clone.File{Name: name, Size: sizes[name]}, offset, pageOf(random, 16<<10))
			}
		case action == 8 && exists:
			err = sink.Rename(name, names[random.IntN(len(names))])
		case action == 9:
			err = sink.Remove(name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Write(clone.File{Name: "last", Size: 10}, 0, []byte("something")); err != nil {
		t.Fatal(err)
	}
}

func TestFolderOfAnotherIsNeverTouched(t *testing.T) {
	t.Parallel()
	finished := func(t *testing.T, store *Store) {
		t.Helper()
		backedUp(t, store, WriteOptions{Identity: owner("another")}, 1<<20)
	}
	begun := func(t *testing.T, store *Store) {
		t.Helper()
		if _, err := Begin(t.Context(), store, WriteOptions{Identity: owner("another")}); err != nil {
			t.Fatal(err)
		}
	}
	foreign := func(t *testing.T, store *Store) {
		t.Helper()
		if err := store.put(t.Context(), "photo.jpg", strings.NewReader("a photo")); err != nil {
			t.Fatal(err)
		}
	}
	partsOnly := func(t *testing.T, store *Store) {
		t.Helper()
		if err := store.put(t.Context(), "part-00001-01234567.tar.zst", strings.NewReader("who knows")); err != nil {
			t.Fatal(err)
		}
	}
	for name, story := range map[string]struct {
		there    func(*testing.T, *Store)
		holder   Identity
		complete bool
	}{
		"another's backup":            {there: finished, holder: owner("another"), complete: true},
		"another's unfinished backup": {there: begun, holder: owner("another")},
		"other files":                 {there: foreign},
		"parts without an owner":      {there: partsOnly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store := volumeAt(t, dir)
			story.there(t, store)
			before := contents(t, dir)
			var occupied *OccupiedError
			if _, err := Begin(t.Context(), store, WriteOptions{Identity: owner("nightly")}); !errors.As(err, &occupied) {
				t.Fatalf("begin: %v", err)
			}
			if occupied.Holder != story.holder || occupied.Complete != story.complete {
				t.Errorf("begin: %+v", occupied)
			}
			if err := Remove(t.Context(), store, owner("nightly")); !errors.As(err, &occupied) {
				t.Errorf("remove: %v", err)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// contents returns all files below a directory by their paths.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range filesOf(t, dir) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(file, dir)] = string(content)
	}
	return found
}

func TestUnfinishedAttemptIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := volumeAt(t, dir)
	killed, err := Begin(t.Context(), store, WriteOptions{Identity: owner("nightly"), PartSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := copyOf(killed, seeded(1), 16<<20); err != nil {
		t.Fatal(err)
	}
	var incomplete *IncompleteError
	if _, _, err := Load(t.Context(), store); !errors.As(err, &incomplete) {
		t.Fatalf("load of an unfinished backup: %v", err)
	}
	expected, manifest := backedUp(t, store, WriteOptions{}, 4<<20)
	if difference := extracted(t, store, manifest).differs(expected); difference != "" {
		t.Error(difference)
	}
	// The Pod that was believed to be dead still runs: it continues, and fails without harm to its successor.
	err = copyOf(killed, seeded(1), 64<<20)
	if err == nil {
		_, _, err = killed.Finish(t.Context(), manifestOf())
	}
	if err == nil {
		t.Error("an attempt that has a successor finished its backup")
	}
	// Some parts were on their way when the successor began. Without a look before each part it would be about thirty-five.
	if beside := len(filesOf(t, dir)) - len(manifest.Parts) - 2; beside > 10 {
		t.Errorf("it has noticed its successor after %d more parts", beside)
	}
	if err := killed.Abort(t.Context()); err != nil {
		t.Errorf("abort: %v", err)
	}
	if difference := extracted(t, store, manifest).differs(expected); difference != "" {
		t.Error(difference)
	}
	if files := filesOf(t, dir); len(files) != len(manifest.Parts)+2 {
		t.Errorf("there are files that do not belong to the backup: %q", files)
	}
}

func TestOwnFinishedBackupIsFound(t *testing.T) {
	t.Parallel()
	store := volumeAt(t, t.TempDir())
	backedUp(t, store, WriteOptions{}, 1<<20)
	var occupied *OccupiedError
	if _, err := Begin(t.Context(), store, WriteOptions{Identity: owner("nightly")}); !errors.As(err, &occupied) || !occupied.Complete || occupied.Holder != owner("nightly") {
		t.Errorf("begin: %v", err)
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := volumeAt(t, dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	writer, err := Begin(ctx, store, WriteOptions{Identity: owner("nightly"), PartSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := copyOf(writer, seeded(1), 16<<20); err != nil {
		t.Fatal(err)
	}
	terminated := errors.New("the Pod is terminating")
	cancel(terminated)
	if err := writer.Write(clone.File{Name: "more", Size: 1}, 0, []byte{1}); !errors.Is(err, terminated) {
		t.Errorf("write after the end: %v", err)
	}
	if _, _, err := writer.Finish(t.Context(), manifestOf()); !errors.Is(err, terminated) {
		t.Errorf("finish after the end: %v", err)
	}
	for range 2 {
		if err := writer.Abort(t.Context()); err != nil {
			t.Errorf("abort: %v", err)
		}
	}
	if files := filesOf(t, dir); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
	var missing *NotFoundError
	if _, _, err := Load(t.Context(), store); !errors.As(err, &missing) {
		t.Errorf("load: %v", err)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := volumeAt(t, dir)
	beside := opened(t, Location{URL: "file:///shop/orders/monthly", VolumeDir: dir})
	_, kept := backedUp(t, beside, WriteOptions{Identity: owner("monthly")}, 1<<20)
	backedUp(t, store, WriteOptions{}, 1<<20)
	for range 2 {
		if err := Remove(t.Context(), store, owner("nightly")); err != nil {
			t.Fatalf("remove: %v", err)
		}
	}
	if _, err := os.Stat(nightlyIn(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := Verify(t.Context(), beside, kept, ReadOptions{}); err != nil {
		t.Errorf("the backup in the next folder: %v", err)
	}
}

// An interrupted Remove leaves no backup, and a second Remove deletes the rest.
func TestRemoveCanBeInterrupted(t *testing.T) {
	t.Parallel()
	for stop := 1; ; stop++ {
		dir := t.TempDir()
		store := volumeAt(t, dir)
		backedUp(t, store, WriteOptions{}, 8<<20)
		store.bucket = &stopping{bucket: store.bucket, left: stop}
		if err := Remove(t.Context(), store, owner("nightly")); err == nil {
			if stop < 4 {
				t.Errorf("interrupted after %d deletions at most, want more stops", stop)
			}
			return
		}
		again := volumeAt(t, dir)
		if _, _, err := Load(t.Context(), again); err == nil {
			t.Errorf("the files left after %d deletions are taken for a backup", stop)
		}
		if err := Remove(t.Context(), again, owner("nightly")); err != nil {
			t.Error(err)
		}
		if files := filesOf(t, dir); len(files) > 0 {
			t.Errorf("left: %q", files)
		}
	}
}

// stopping is a bucket whose remove fails after some calls.
type stopping struct {
	bucket
	left int
}

func (s *stopping) remove(ctx context.Context, name string) error {
	s.left--
	if s.left < 0 {
		return errors.New("interrupted")
	}
	return s.bucket.remove(ctx, name)
}

func TestWrongKeys(t *testing.T) {
	t.Parallel()
	store := volumeAt(t, t.TempDir())
	_, manifest := backedUp(t, store, WriteOptions{Recipients: []age.Recipient{newIdentity(t).Recipient()}}, 1<<20)
	for name, identities := range map[string][]age.Identity{"none": nil, "another": {newIdentity(t)}} {
		var key *encryption.KeyError
		if err := Extract(t.Context(), store, manifest, ReadOptions{Identities: identities}, tree{}); !errors.As(err, &key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Extract returns the error of its sink, or the cause of its context's end.
func TestExtractEndsWithItsSink(t *testing.T) {
	t.Parallel()
	store := volumeAt(t, t.TempDir())
	_, manifest := backedUp(t, store, WriteOptions{PartSize: 1 << 20}, 16<<20)
	full := errors.New("the volume is full")
	if err := Extract(t.Context(), store, manifest, ReadOptions{}, &failing{after: 20, err: full}); !errors.Is(err, full) {
		t.Errorf("extract: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(full)
	if err := Extract(ctx, store, manifest, ReadOptions{}, tree{}); !errors.Is(err, full) {
		t.Errorf("extract in a context that has ended: %v", err)
	}
}

// Extract leaves no goroutine running, however early it ends: with -race this test fails if a worker still decompresses.
func TestExtractLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	store := volumeAt(t, t.TempDir())
	_, manifest := backedUp(t, store, WriteOptions{PartSize: 64 << 20}, 24<<20)
	full := errors.New("the volume is full")
	for after := range 30 {
		if err := Extract(t.Context(), store, manifest, ReadOptions{}, &failing{after: after, err: full}); !errors.Is(err, full) {
			t.Fatalf("extract: %v", err)
		}
	}
}

type failing struct {
	discardSink
	after int
	err   error
}

func (f *failing) Write(clone.File, int64, []byte) error {
	f.after--
	if f.after < 0 {
		return f.err
	}
	return nil
}

func TestProgressEndsAtAll(t *testing.T) {
	t.Parallel()
	store := volumeAt(t, t.TempDir())
	_, manifest := backedUp(t, store, WriteOptions{}, 8<<20)
	var last int64
	grows := true
	options := ReadOptions{Progress: func(bytes int64) { grows, last = grows && bytes >= last, bytes }}
	if err := Verify(t.Context(), store, manifest, options); err != nil {
		t.Fatal(err)
	}
	if !grows || last != manifest.Data.Raw {
		t.Errorf("the last progress was %d of %d, growing: %t", last, manifest.Data.Raw, grows)
	}
}
