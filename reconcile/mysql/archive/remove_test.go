package archive

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRemoveUnfinished(t *testing.T) {
	t.Parallel()
	unfinished := func(t *testing.T, store *Store, who Identity) {
		t.Helper()
		writer, err := Begin(t.Context(), store, WriteOptions{Identity: who})
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.shipper.store.put(t.Context(), "part-00001-"+writer.attempt+".tar.zst", strings.NewReader("cut off")); err != nil {
			t.Fatal(err)
		}
		writer.cancel(errors.New("its Pod was killed"))
	}
	tests := map[string]struct {
		there func(t *testing.T, store *Store, dir string)
		// finished: it is refused as a backup that may be good. left: the files stay.
		finished, left bool
	}{
		"nothing": {there: func(*testing.T, *Store, string) {}},
		"files of a killed attempt": {there: func(t *testing.T, store *Store, _ string) {
			t.Helper()
			unfinished(t, store, owner("nightly"))
		}},
		"its own complete backup": {finished: true, left: true, there: func(t *testing.T, store *Store, _ string) {
			t.Helper()
			backedUp(t, store, WriteOptions{}, 1<<20)
		}},
		"its own backup with a missing part": {finished: true, left: true, there: func(t *testing.T, store *Store, dir string) {
			t.Helper()
			_, manifest := backedUp(t, store, WriteOptions{}, 1<<20)
			if err := os.Remove(filepath.Join(nightlyIn(dir), manifest.Parts[0].Name)); err != nil {
				t.Fatal(err)
			}
		}},
		"another's backup": {left: true, there: func(t *testing.T, store *Store, _ string) {
			t.Helper()
			backedUp(t, store, WriteOptions{Identity: owner("another")}, 1<<20)
		}},
		"files of another's attempt": {left: true, there: func(t *testing.T, store *Store, _ string) {
			t.Helper()
			unfinished(t, store, owner("another"))
		}},
		"a user's files": {left: true, there: func(t *testing.T, store *Store, _ string) {
			t.Helper()
			if err := store.put(t.Context(), "part-of-a-diary.txt", strings.NewReader("dear")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.there(t, volumeAt(t, dir), dir)
			before := filesOf(t, dir)
			err := RemoveUnfinished(t.Context(), volumeAt(t, dir), owner("nightly"))
			if _, finished := errors.AsType[*FinishedError](err); finished != test.finished || !finished && err != nil {
				t.Errorf("%v", err)
			}
			if after := filesOf(t, dir); test.left && !slices.Equal(before, after) || !test.left && len(after) > 0 {
				t.Errorf("left: %q of %q", after, before)
			}
		})
	}
}
