package agent

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// frozenAtMost is for how long a test may freeze a file system.
const frozenAtMost = "60"

// onDisk puts the member's volume on a file system of its own, which freeze can freeze.
func onDisk(t *testing.T, size string) func(Layout) {
	t.Helper()
	for _, program := range []string{"mkfs.ext4", "mount", "fsfreeze"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("a volume on a disk of its own needs %s", program)
		}
	}
	image := filepath.Join(t.TempDir(), "disk")
	return func(layout Layout) {
		t.Helper()
		for _, command := range [][]string{{"truncate", "-s", size, image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, layout.Volume}} {
			if said, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Skipf("mounting a disk requires root and a loop device: %v: %s", err, said)
			}
		}
		t.Cleanup(func() {
			awaits(t, "the disk is unmounted", 5*time.Second, func() bool { return unix.Unmount(layout.Volume, 0) == nil }) // the last write may have just ended
		})
	}
}

// freeze makes the member's volume stand still until the function that it returns is called, the test ends, or a minute is over. That is so
// also if the test is killed.
func freeze(t *testing.T, layout Layout) (thaw func()) {
	t.Helper()
	watchdog := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", `trap '' HUP; sleep "$1"; fsfreeze -u "$2"`, "sh", frozenAtMost, layout.Volume)
	watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := watchdog.Start(); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), "fsfreeze", "-f", layout.Volume).CombinedOutput(); err != nil {
		t.Fatalf("freeze the volume: %v: %s", err, said)
	}
	isThawed := false
	thaw = func() {
		if isThawed {
			return
		}
		isThawed = true
		if said, err := exec.CommandContext(context.WithoutCancel(t.Context()), "fsfreeze", "-u", layout.Volume).CombinedOutput(); err != nil {
			t.Errorf("thaw the volume: %v: %s", err, said)
		}
		_ = syscall.Kill(-watchdog.Process.Pid, syscall.SIGKILL)
		_ = watchdog.Wait()
	}
	t.Cleanup(thaw)
	return thaw
}

// probes makes the agent write to its volume until the test ends.
func probes(t *testing.T, a *Agent) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); a.probeVolume(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
}

// awaits waits until something holds.
func awaits(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); <-time.After(20 * time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// leading returns what a primary db-0 is assigned, and the record that replaces it.
func leading(a *Agent) (order, fence replication.Assignment) {
	order = replication.Assignment{
		Protocol: replication.Protocol, Role: replication.RolePrimary, Boot: a.Status().Boot,
		Record: replication.Record{Epoch: 1, Revision: 1, Primary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1},
	}
	fence = order
	fence.Role, fence.Record = replication.RoleReplica, replication.Record{Epoch: 2, Revision: 2, FormerPrimary: "db-0", InSync: order.Record.InSync, RequiredAcks: 1}
	return order, fence
}

// TestAVolumeThatStandsStillStopsNoReport: the member reports for how long it has, takes the order to lead no more, and refuses what it
// would have to store. When the volume continues, it has what the agent has.
func TestAVolumeThatStandsStillStopsNoReport(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	onDisk(t, "64M")(layout)
	withData(t, layout)
	a := newAgent(t, layout, memberState())
	probes(t, a)
	order, fence := leading(a)
	if err := a.Assign(order); err != nil {
		t.Fatal(err)
	}
	awaits(t, "the volume is known to work", 10*time.Second, func() bool { return a.Status().Probe == replication.VolumeProbe{IsKnown: true} })
	thaw := freeze(t, layout)
	began := time.Now()

	t.Log("the first write waits for a while")
	order.Record.Revision++
	err := a.Assign(order)
	if took := time.Since(began); !errors.Is(err, errVolumeStands) || took > 2*storeFor || a.Status().Held.Revision != 1 {
		t.Fatalf("an assignment that cannot be stored: %v after %s, holds %+v", err, took, a.Status().Held)
	}
	t.Log("further ones do not")
	again := time.Now()
	fence.Record.Revision = 3
	if err := a.Assign(order); !errors.Is(err, errVolumeStands) {
		t.Errorf("the same assignment again: %v", err)
	}
	if err := a.Assign(fence); err != nil {
		t.Errorf("the record that replaces this primary: %v", err)
	}
	if took := time.Since(again); took > time.Second || a.Status().Held.Epoch != 2 {
		t.Errorf("it took %s to follow the record %+v", took, a.Status().Held)
	}
	if kept := a.Status().Held; kept.Epoch != 2 {
		t.Errorf("it holds %+v", kept)
	}
	awaits(t, "the operator may replace it", 20*time.Second, func() bool { return a.Status().Probe.StuckFor >= replication.StuckAfter })
	t.Logf("reported after %s", time.Since(began).Round(100*time.Millisecond))
	thaw()
	awaits(t, "the volume works", 10*time.Second, func() bool { return a.Status().Probe == replication.VolumeProbe{IsKnown: true, WasUnsound: true} })
	awaits(t, "what the agent follows is stored", 3*adoptFor, func() bool { return stateOf(t, layout).Held.Epoch == 2 })
	a.mu.Lock()
	defer a.mu.Unlock()
	if info, err := os.Stat(layout.probeFile()); err != nil || info.Size() != probeSize {
		t.Errorf("the file takes %v, error %v", info, err)
	}
}

// TestALateWriteIsWhatTheOperatorAsksForAgain: on a volume that is slower than the agent's patience, an assignment takes effect in the end.
func TestALateWriteIsWhatTheOperatorAsksForAgain(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	onDisk(t, "64M")(layout)
	withData(t, layout)
	a := newAgent(t, layout, memberState())
	order, _ := leading(a)
	thaw := freeze(t, layout)
	if err := a.Assign(order); !errors.Is(err, errVolumeStands) {
		t.Fatalf("the first time: %v", err)
	}
	thaw()
	awaits(t, "the operator asks again", adoptFor, func() bool { return a.Assign(order) == nil })
	if kept := stateOf(t, layout); !kept.Held.Equal(order.Record) {
		t.Errorf("the volume has %+v", kept.Held)
	}
}

// TestAVolumeThatContinuesTakesTheNextWriteAtOnce, whatever was late: a replica that must acknowledge no more must not refuse that for
// seconds.
func TestAVolumeThatContinuesTakesTheNextWriteAtOnce(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	onDisk(t, "64M")(layout)
	withData(t, layout)
	a := newAgent(t, layout, memberState())
	order, fence := leading(a)
	order.Role = replication.RoleReplica
	thaw := freeze(t, layout)
	if err := a.Assign(order); !errors.Is(err, errVolumeStands) {
		t.Fatalf("the first assignment: %v", err)
	}
	if err := a.Assign(fence); !errors.Is(err, errVolumeStands) {
		t.Fatalf("the next one, while the volume stands still: %v", err)
	}
	thaw()
	awaits(t, "the next one is stored", time.Second, func() bool { return a.Assign(fence) == nil && stateOf(t, layout).Held.Epoch == 2 })
	<-time.After(adoptFor + time.Second)
	if kept := stateOf(t, layout).Held; kept.Epoch != 2 {
		t.Errorf("later, the volume has %+v", kept)
	}
}

// TestALateWriteDoesNotStay if it is not asked for again: the agent does not follow it.
func TestALateWriteDoesNotStay(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	onDisk(t, "64M")(layout)
	withData(t, layout)
	a := newAgent(t, layout, memberState())
	thaw := freeze(t, layout)
	if err := a.keepForgetful(true); !errors.Is(err, errVolumeStands) || a.isForgetful() {
		t.Fatalf("it is stored: %v", err)
	}
	if err := a.keepForgetful(false); !errors.Is(err, errVolumeStands) {
		t.Errorf("what the volume may not have any more is certain: %v", err)
	}
	thaw()
	awaits(t, "the late write is completed", adoptFor, func() bool { return stateOf(t, layout).IsForgetful })
	awaits(t, "it is undone", 3*adoptFor, func() bool { return !stateOf(t, layout).IsForgetful && a.keepForgetful(false) == nil })
}

// TestAReadOnlyVolumeFails, and one without room does not.
func TestAReadOnlyVolumeFails(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	fullVolume(t, layout, false)
	a := newAgentOn(t, layout)
	probes(t, a)
	works := func() bool { return a.Status().Probe == replication.VolumeProbe{IsKnown: true} }
	awaits(t, "a full volume works", 5*time.Second, works)
	if err := unix.Mount("", layout.Volume, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=1m"); errors.Is(err, syscall.EBUSY) {
		t.Skip("this kernel does not make a volume read-only that is in use")
	} else if err != nil {
		t.Fatal(err)
	}
	awaits(t, "a read-only one fails", 20*time.Second, func() bool { return a.Status().Probe.FailingFor >= replication.FailingAfter })
	if probe := a.Status().Probe; probe.Failure == "" || probe.StuckFor > 0 {
		t.Errorf("it reports %+v", probe)
	}
	if err := unix.Mount("", layout.Volume, "", unix.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	awaits(t, "it works again", 5*time.Second, func() bool { return a.Status().Probe == replication.VolumeProbe{IsKnown: true, WasUnsound: true} })
}

// newAgentOn returns an agent of a member whose volume is prepared.
func newAgentOn(t *testing.T, layout Layout) *Agent {
	t.Helper()
	if err := os.WriteFile(layout.probeFile(), make([]byte, 0), 0o600); err != nil && !isFull(err) {
		t.Fatal(err)
	}
	return &Agent{layout: layout, changed: make(chan struct{}, 1)}
}
