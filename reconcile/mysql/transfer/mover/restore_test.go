package mover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// backedUp is a shop with a backup, and the environment of a restore to an empty volume.
func backedUp(t *testing.T) (*shop, Environment) {
	t.Helper()
	s := newShop(t)
	made := s.mustBackup(t)
	env := s.env
	env.Layout, env.Checksum = agent.Layout{Volume: t.TempDir()}, made.Checksum
	return s, env
}

func restoreTo(ctx context.Context, env Environment) (protocol.Outcome, error) {
	return RunRestore(ctx, env)
}

// checkData fails unless the folder has the copied data.
func checkData(t *testing.T, root string) {
	t.Helper()
	for name, want := range copied() {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, want the same %d bytes (%v)", name, len(got), len(want), err)
		}
	}
}

func checkNoData(t *testing.T, env Environment) {
	t.Helper()
	if _, err := os.Stat(env.Layout.DataDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a data directory (%v)", err)
	}
}

func TestRestoreMakesWhatWasCopied(t *testing.T) {
	t.Parallel()
	s, env := backedUp(t)
	outcome, err := restoreTo(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	checkData(t, env.Layout.DataDir())
	manifest, err := s.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Checksum != env.Checksum || outcome.ServerVersion != "9.7.4" || outcome.GTIDExecuted != manifest.GTIDs.AtLeast || outcome.Adopted || outcome.DataSize == 0 {
		t.Errorf("the outcome is %+v", outcome)
	}
	held, err := agent.LookAtVolume(env.Layout)
	if want := (agent.RestoredFrom{UID: "0a1b", Checksum: env.Checksum, URL: env.URL, Version: "9.7.4"}); err != nil || held.Contents != agent.VolumeRestored || held.From != want {
		t.Errorf("the volume holds %+v (%v)", held, err)
	}
}

func TestRestoreIsDoneOnceEvenWhereTheBackupIsGoneByThen(t *testing.T) {
	t.Parallel()
	s, env := backedUp(t)
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	before := sumOf(t, env.Layout.Volume)

	elsewhere, byURL := env, env
	elsewhere.URL, elsewhere.UID, elsewhere.Checksum, elsewhere.AdoptOnly = "file:///moved", "", "", true
	byURL.UID, byURL.Checksum = "", ""
	if err := os.CopyFS(filepath.Join(s.env.StoreDir, "moved"), os.DirFS(backupDir(s.env))); err != nil {
		t.Fatal(err)
	}
	adopted := func(name string, again Environment) {
		outcome, err := restoreTo(t.Context(), again)
		if err != nil || !outcome.Adopted || outcome.Checksum != env.Checksum || outcome.ServerVersion != "9.7.4" {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
	}
	adopted("the same backup from another folder", elsewhere)
	adopted("by URL alone", byURL)
	if err := os.RemoveAll(s.env.StoreDir); err != nil {
		t.Fatal(err)
	}
	adopted("as it was", env)
	if outcome, err := restoreTo(t.Context(), byURL); err == nil {
		t.Errorf("the earlier backup at a URL is taken for the current one: %+v", outcome)
	}
	if sumOf(t, env.Layout.Volume) != before {
		t.Error("it was restored again")
	}
}

// useRestored restores the backup, and lets a cluster use it.
func useRestored(t *testing.T, env Environment) {
	t.Helper()
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(env.Layout.Volume, "member.json")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string]any
	if err := json.Unmarshal(content, &kept); err != nil {
		t.Fatal(err)
	}
	kept["held"] = replication.Record{Epoch: 3, Primary: "db-0"}
	if content, err = json.Marshal(kept); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if held, err := agent.LookAtVolume(env.Layout); err != nil || !held.Used {
		t.Fatalf("the volume holds %+v (%v)", held, err)
	}
}

// A restore leaves a volume unchanged that began as the backup and that a cluster has used since. The outcome reports it, because the
// volume no longer holds the backup's data.
func TestDataThatWasUsedSinceIsNotToldAsTheBackup(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Environment){
		"by its instance":                     func(*Environment) {},
		"with other members":                  func(e *Environment) { e.AdoptOnly = true },
		"by URL, whose backup is read":        func(e *Environment) { e.UID, e.Checksum = "", "" },
		"by its instance, the backup is gone": func(e *Environment) { e.StoreDir = "/nowhere" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, env := backedUp(t)
			useRestored(t, env)
			before := sumOf(t, env.Layout.Volume)
			change(&env)
			outcome, err := restoreTo(t.Context(), env)
			if err != nil || !outcome.Adopted || !outcome.Used || outcome.ServerVersion != "" || !strings.Contains(outcome.Message, "has used since") {
				t.Errorf("the outcome is %+v (%v)", outcome, err)
			}
			if sumOf(t, env.Layout.Volume) != before {
				t.Error("the volume is changed")
			}
		})
	}
}

func TestRestoreNeverTouchesOtherData(t *testing.T) {
	t.Parallel()
	withData := func(t *testing.T, env Environment) {
		t.Helper()
		if err := os.MkdirAll(env.Layout.DataDir(), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(env.Layout.DataDir(), "ibdata1"), []byte("dear"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]func(t *testing.T, env *Environment){
		"a data directory": func(t *testing.T, env *Environment) {
			t.Helper()
			withData(t, *env)
		},
		"another backup": func(t *testing.T, env *Environment) {
			t.Helper()
			if _, err := restoreTo(t.Context(), *env); err != nil {
				t.Fatal(err)
			}
			env.UID, env.Checksum = "another", "sha256:another"
		},
		"another backup from a URL, which must be read": func(t *testing.T, env *Environment) {
			t.Helper()
			if _, err := restoreTo(t.Context(), *env); err != nil {
				t.Fatal(err)
			}
			second := newShop(t)
			second.env.UID, second.env.StoreDir, second.env.URL = "another", env.StoreDir, "file:///another"
			second.mustBackup(t)
			env.UID, env.Checksum, env.URL = "", "", "file:///another"
		},
		"another backup that is now at the same URL": func(t *testing.T, env *Environment) {
			t.Helper()
			if _, err := restoreTo(t.Context(), *env); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(backupDir(*env)); err != nil {
				t.Fatal(err)
			}
			second := newShop(t)
			second.env.UID, second.env.StoreDir, second.env.URL = "another", env.StoreDir, env.URL
			second.mustBackup(t)
			env.UID, env.Checksum = "", ""
		},
		"nothing, where only an adoption is requested": func(t *testing.T, env *Environment) {
			t.Helper()
			env.AdoptOnly = true
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, env := backedUp(t)
			prepare(t, &env)
			before := sumOf(t, env.Layout.Volume)
			outcome, err := restoreTo(t.Context(), env)
			if ended, status := Ended(outcome, err, protocol.ReasonRestoreFailed); ended.Reason != protocol.ReasonDataExists || status != protocol.ExitRefused {
				t.Errorf("%s with exit status %d: %v", ended.Reason, status, err)
			}
			if sumOf(t, env.Layout.Volume) != before {
				t.Error("the volume is changed")
			}
		})
	}
}

func TestRestoreRefusesBeforeItTouchesAnything(t *testing.T) {
	t.Parallel()
	part := func(t *testing.T, env Environment) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(backupDir(env), "part-*"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no part: %v, %v", found, err)
		}
		return found[0]
	}
	tests := map[string]struct {
		spoil  func(t *testing.T, env *Environment)
		reason string
		status int
	}{
		"no backup there": {func(_ *testing.T, env *Environment) { env.URL = "file:///shop/db/nightly-2" }, protocol.ReasonBackupNotFound, protocol.ExitRefused},
		"no manifest": {func(t *testing.T, env *Environment) {
			t.Helper()
			remove(t, filepath.Join(backupDir(*env), "manifest.json"))
		}, protocol.ReasonBackupIncomplete, protocol.ExitRefused},
		"a part is missing":   {func(t *testing.T, env *Environment) { t.Helper(); remove(t, part(t, *env)) }, protocol.ReasonBackupIncomplete, protocol.ExitRefused},
		"another instance's":  {func(_ *testing.T, env *Environment) { env.UID = "another" }, protocol.ReasonBackupForeign, protocol.ExitRefused},
		"another than before": {func(_ *testing.T, env *Environment) { env.Checksum = "sha256:another" }, protocol.ReasonBackupForeign, protocol.ExitRefused},
		"another page size": {func(t *testing.T, env *Environment) {
			t.Helper()
			env.ServerSettings = map[string]string{"innodb_page_size": "8K"}
		}, protocol.ReasonSettingsMismatch, protocol.ExitRefused},
		"credentials are needed": {func(t *testing.T, env *Environment) { t.Helper(); env.CredentialsDir = t.TempDir() }, protocol.ReasonCredentialsNotFound, protocol.ExitRetry},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, env := backedUp(t)
			test.spoil(t, &env)
			before := sumOf(t, env.Layout.Volume)
			outcome, err := restoreTo(t.Context(), env)
			if ended, status := Ended(outcome, err, protocol.ReasonRestoreFailed); ended.Reason != test.reason || status != test.status {
				t.Errorf("%s with exit status %d, want %s with %d: %v", ended.Reason, status, test.reason, test.status, err)
			}
			if sumOf(t, env.Layout.Volume) != before {
				t.Error("the volume is changed")
			}
			checkNoData(t, env)
		})
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func TestRestoreTakesTheSameSettingInOtherWords(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	env.ServerSettings = map[string]string{"innodb_page_size": "16K"}
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Error(err)
	}
}

func TestRestoreOfADamagedBackupEndsWithoutData(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	parts, err := filepath.Glob(filepath.Join(backupDir(env), "part-*"))
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	content, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(parts[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	outcome, err := restoreTo(t.Context(), env)
	if ended, status := Ended(outcome, err, protocol.ReasonRestoreFailed); ended.Reason != protocol.ReasonBackupCorrupt || status != protocol.ExitRefused {
		t.Errorf("%s with exit status %d: %v", ended.Reason, status, err)
	}
	checkNoData(t, env)
	if _, err := RunVerify(t.Context(), env); reasonOf(err) != protocol.ReasonBackupCorrupt {
		t.Errorf("verify: %v", err)
	}
}

func TestVerifyReadsAllAndWritesNothing(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	before := sumOf(t, env.StoreDir)
	outcome, err := RunVerify(t.Context(), env)
	if err != nil || outcome.Checksum != env.Checksum || outcome.Instance != "nightly-1" {
		t.Errorf("%+v, %v", outcome, err)
	}
	if sumOf(t, env.StoreDir) != before {
		t.Error("the backup is changed")
	}
}

func TestRestoreOfAnEncryptedBackupTakesItsKey(t *testing.T) {
	t.Parallel()
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		key, reason string
		status      int
	}{
		"without a key":       {"", protocol.ReasonEncryptionKeyNotFound, protocol.ExitRetry},
		"with another's":      {other.String(), protocol.ReasonEncryptionKeyInvalid, protocol.ExitRefused},
		"with an invalid key": {"AGE-SECRET-KEY-1", protocol.ReasonEncryptionKeyInvalid, protocol.ExitRefused},
		"with its own":        {own.String(), protocol.ReasonCompleted, protocol.ExitDone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.env.RecipientFile, _ = keyFiles(t, own.Recipient().String(), "")
			s.mustBackup(t)
			env := s.env
			env.RecipientFile, env.Layout = "", agent.Layout{Volume: t.TempDir()}
			_, env.IdentityFile = keyFiles(t, "", test.key)
			for what, run := range map[string]func(context.Context, Environment) (protocol.Outcome, error){"verify": RunVerify, "restore": RunRestore} {
				outcome, err := run(t.Context(), env)
				if ended, status := Ended(outcome, err, protocol.ReasonRestoreFailed); ended.Reason != test.reason || status != test.status {
					t.Errorf("%s: %s with exit status %d, want %s with %d: %v", what, ended.Reason, status, test.reason, test.status, err)
				}
			}
			if test.status != protocol.ExitDone {
				checkNoData(t, env)
			} else {
				checkData(t, env.Layout.DataDir())
			}
		})
	}
}

// smallVolume has a fixed amount of free space.
type smallVolume struct {
	place
	room int64
}

func (v smallVolume) free() (int64, error) { return v.room, nil }

// A member sends pages that change during the copy twice. They need space only once.
func TestRestoreTakesNoMoreRoomThanTheData(t *testing.T) {
	t.Parallel()
	s, env := backedUp(t)
	manifest, err := s.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Data.Bytes < manifest.Data.Size*3/2 {
		t.Fatalf("of %d bytes only %d were sent", manifest.Data.Size, manifest.Data.Bytes)
	}
	fitting := restoreAttempt{env: env, meter: &meter{}, place: smallVolume{env.place(), manifest.Data.Size}, directory: newDirectory}
	if _, err := fitting.run(t.Context()); err != nil {
		t.Error(err)
	}
	checkData(t, env.Layout.DataDir())
}

// fullDirectory accepts a little data, then none.
type fullDirectory struct {
	directory
	left int
}

func (d *fullDirectory) Write(file clone.File, offset int64, data []byte) error {
	if d.left -= len(data); d.left < 0 {
		return &fs.PathError{Op: "write", Path: file.Name, Err: syscall.ENOSPC}
	}
	return d.directory.Write(file, offset, data)
}

func TestRestoreSaysThatTheVolumeIsTooSmall(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	before := sumOf(t, env.Layout.Volume)
	small := restoreAttempt{env: env, meter: &meter{}, place: smallVolume{env.place(), 1000}, directory: newDirectory}
	outcome, err := small.run(t.Context())
	if ended, status := Ended(outcome, err, protocol.ReasonRestoreFailed); ended.Reason != protocol.ReasonVolumeTooSmall || status != protocol.ExitRefused || !strings.Contains(ended.Message, "spec.storage") {
		t.Errorf("known before the restore: %+v with exit status %d", ended, status)
	}
	if sumOf(t, env.Layout.Volume) != before {
		t.Error("the volume is changed")
	}
	full := restoreAttempt{env: env, meter: &meter{}, place: env.place(), directory: func(root string) (directory, error) {
		into, err := newDirectory(root)
		return &fullDirectory{directory: into, left: 1000}, err
	}}
	outcome, err = full.run(t.Context())
	if ended, status := Ended(outcome, err, protocol.ReasonRestoreFailed); ended.Reason != protocol.ReasonVolumeTooSmall || status != protocol.ExitRefused {
		t.Errorf("noticed during the restore: %+v with exit status %d", ended, status)
	}
	checkNoData(t, env)
	// After the volume has grown.
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Error(err)
	}
	checkData(t, env.Layout.DataDir())
}

func TestRestoreByHandMakesADataDirectory(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	env.Layout = agent.Layout{}
	root := t.TempDir()
	empty := filepath.Join(root, "empty")
	if err := os.Mkdir(empty, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]string{"a new folder": filepath.Join(root, "a", "new", "one") + "/", "an empty folder": empty} {
		env.Into = into
		if _, err := restoreTo(t.Context(), env); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkData(t, into)
		if left, _ := filepath.Glob(filepath.Clean(into) + ".*"); len(left) > 0 {
			t.Errorf("%s: it leaves %v", name, left)
		}
	}
	before := sumOf(t, root)
	if _, err := restoreTo(t.Context(), env); reasonOf(err) != protocol.ReasonDataExists {
		t.Errorf("a second run: %v", err)
	}
	if sumOf(t, root) != before {
		t.Error("the restored data is changed")
	}
}

// It changes the process's directory, and so does not run in parallel.
func TestRestoreByHandIntoTheCurrentDirectory(t *testing.T) {
	_, env := backedUp(t)
	root := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(root, 0o750); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	env.Layout, env.Into = agent.Layout{}, "."
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Error(err)
	}
	checkData(t, root)
}

// A restore removes the temporary folder only if it is certain that an unfinished restore left it.
func TestRestoreByHandRemovesNothingOfOthers(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	env.Layout = agent.Layout{}
	env.Into = filepath.Join(t.TempDir(), "data")
	beside := filepath.Join(env.Into+".restoring", "shop", "orders.ibd")
	if err := errors.Join(os.MkdirAll(filepath.Dir(beside), 0o750), os.WriteFile(beside, []byte("rows"), 0o600)); err != nil {
		t.Fatal(err)
	}
	outcome, err := restoreTo(t.Context(), env)
	if ended, status := Ended(outcome, err, protocol.ReasonRestoreFailed); ended.Reason != protocol.ReasonDataExists || status != protocol.ExitRefused {
		t.Errorf("%+v with exit status %d", ended, status)
	}
	if rows, err := os.ReadFile(beside); string(rows) != "rows" || err != nil {
		t.Errorf("%q, %v", rows, err)
	}
	// An interrupted one.
	if err := os.RemoveAll(env.Into + ".restoring"); err != nil {
		t.Fatal(err)
	}
	into, err := newDirectory(env.Into + ".restoring")
	if err := errors.Join(err, into.Write(clone.File{Name: "shop/half.ibd", Size: 10}, 0, nil), into.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	checkData(t, env.Into)
}

// hurried starts another restore in the same place while the first one is about to finish.
type hurried struct{ place }

func (p hurried) finish(from agent.RestoredFrom) error {
	root, err := p.begin()
	if err != nil {
		return err
	}
	another, err := newDirectory(root)
	if err != nil {
		return err
	}
	return errors.Join(another.Write(clone.File{Name: "ibdata1", Size: 10}, 0, []byte("half")), another.Close(), p.place.finish(from))
}

func TestHalfARestoreIsNotTakenForTheWholeOne(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	r := restoreAttempt{env: env, meter: &meter{}, place: hurried{env.place()}, directory: newDirectory}
	if _, err := r.run(t.Context()); reasonOf(err) != protocol.ReasonRestoreFailed {
		t.Errorf("%v", err)
	}
	checkNoData(t, env)
	if held, err := agent.LookAtVolume(env.Layout); err != nil || held.Contents != agent.VolumeUnfinished {
		t.Errorf("%+v, %v", held, err)
	}
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	checkData(t, env.Layout.DataDir())
}

func TestRestoreToldToEndIsContinued(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	stopping := restoreAttempt{env: env, meter: &meter{}, place: env.place(), directory: func(root string) (directory, error) {
		cancel()
		return newDirectory(root)
	}}
	_, err := stopping.run(ctx)
	if reasonOf(interrupted(ctx, err)) != protocol.ReasonInterrupted {
		t.Errorf("%v", err)
	}
	checkNoData(t, env)
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	checkData(t, env.Layout.DataDir())
}

func TestManifestIsAskedForBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	var incomplete *archive.IncompleteError
	_, env := backedUp(t)
	remove(t, filepath.Join(backupDir(env), "manifest.json"))
	began := false
	r := restoreAttempt{env: env, meter: &meter{}, place: env.place(), directory: func(root string) (directory, error) {
		began = true
		return newDirectory(root)
	}}
	if _, err := r.run(t.Context()); !errors.As(err, &incomplete) || began {
		t.Errorf("%v, and it began: %v", err, began)
	}
}
