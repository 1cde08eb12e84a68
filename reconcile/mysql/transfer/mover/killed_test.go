package mover

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
)

// The environment variables with which a test starts itself again as a restore that is killed.
const (
	envKilledAt = "TEST_RESTORE_KILLED_AT"
	envStore    = "TEST_RESTORE_STORE"
	envVolume   = "TEST_RESTORE_VOLUME"
	envChecksum = "TEST_RESTORE_CHECKSUM"
)

// killer counts the steps of a restore, and kills the process at one of them. What was written by then stays.
type killer struct{ at, step int }

func (k *killer) next() {
	k.step++
	if k.step == k.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal takes effect
	}
}

type deadlyPlace struct {
	place
	killer *killer
}

func (p deadlyPlace) look() (agent.VolumeContents, error) {
	p.killer.next()
	return p.place.look()
}

func (p deadlyPlace) begin() (string, error) {
	p.killer.next()
	defer p.killer.next()
	return p.place.begin()
}

func (p deadlyPlace) finish(from agent.RestoredFrom) error {
	p.killer.next()
	defer p.killer.next()
	return p.place.finish(from)
}

type deadlyDirectory struct {
	directory
	killer *killer
}

func (d deadlyDirectory) Write(file clone.File, offset int64, data []byte) error {
	d.killer.next()
	return d.directory.Write(file, offset, data)
}

func (d deadlyDirectory) Finish() error {
	d.killer.next()
	defer d.killer.next()
	return d.directory.Finish()
}

// TestRestoreThatIsKilled is no test of its own: TestRestoreSurvivesBeingKilledAtEveryStep starts it as a separate process.
func TestRestoreThatIsKilled(t *testing.T) { //nolint:paralleltest // it ends the process
	at, err := strconv.Atoi(os.Getenv(envKilledAt))
	if err != nil {
		t.Skip("started by TestRestoreSurvivesBeingKilledAtEveryStep")
	}
	env := Environment{
		URL: "file:///shop/db/nightly-1", StoreDir: os.Getenv(envStore), UID: "0a1b", Checksum: os.Getenv(envChecksum),
		Layout: agent.Layout{Volume: os.Getenv(envVolume)}, Log: logr.Discard(),
	}
	k := &killer{at: at}
	r := restoreAttempt{env: env, meter: &meter{}, place: deadlyPlace{env.place(), k}, directory: func(root string) (directory, error) {
		k.next()
		into, err := newDirectory(root)
		return deadlyDirectory{into, k}, err
	}}
	if _, err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// runKilled runs a restore in a process that is killed at a step; killed is false if the restore had fewer steps.
func runKilled(t *testing.T, env Environment, at int) (killed bool) {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRestoreThatIsKilled$")
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%d", envKilledAt, at), envStore+"="+env.StoreDir, envVolume+"="+env.Layout.Volume, envChecksum+"="+env.Checksum)
	output, err := process.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("the restore failed instead of being killed at step %d: %v\n%s", at, err, output)
	}
	return false
}

// TestRestoreSurvivesBeingKilledAtEveryStep: after a kill there is no data directory, or a complete one, and the next attempt completes it.
func TestRestoreSurvivesBeingKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	s, first := backedUp(t)
	steps := 0
	for at := 1; ; at++ {
		env := first
		env.Layout = agent.Layout{Volume: t.TempDir()}
		if !runKilled(t, env, at) {
			checkData(t, env.Layout.DataDir())
			break
		}
		steps++
		if _, err := os.Stat(env.Layout.DataDir()); err == nil {
			checkData(t, env.Layout.DataDir())
		}
		outcome, err := restoreTo(t.Context(), env)
		if err != nil {
			t.Fatalf("killed at step %d, then: %v", at, err)
		}
		checkData(t, env.Layout.DataDir())
		if left, _ := filepath.Glob(filepath.Join(env.Layout.Volume, "*")); len(left) != 2 {
			t.Errorf("killed at step %d, then there is %s", at, strings.Join(left, " "))
		}
		if outcome.Checksum != first.Checksum {
			t.Errorf("killed at step %d, then the outcome is %+v", at, outcome)
		}
	}
	if steps < 10 {
		t.Errorf("it was killed at only %d steps", steps)
	}
	if _, err := s.load(t); err != nil {
		t.Errorf("the backup itself was damaged: %v", err)
	}
}

// TestRestoreKilledBetweenTheRecordAndTheRename: the volume has the record of the backup, and only the rename is missing.
func TestRestoreKilledBetweenTheRecordAndTheRename(t *testing.T) {
	t.Parallel()
	_, env := backedUp(t)
	if _, err := restoreTo(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(env.Layout.DataDir(), env.Layout.RestoringDir()); err != nil {
		t.Fatal(err)
	}
	env.StoreDir = t.TempDir() // the backup is not read at all
	outcome, err := restoreTo(t.Context(), env)
	if err != nil || !outcome.Adopted {
		t.Errorf("%+v, %v", outcome, err)
	}
	checkData(t, env.Layout.DataDir())
}
