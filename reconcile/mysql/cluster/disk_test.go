package cluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// disk sets a volume of 1 GiB.
func disk(level replication.DiskLevel) func(*replication.Status) {
	return func(s *replication.Status) { s.Disk = replication.Disk{Size: 1 << 30, Free: 1 << 29, Level: level} }
}

// TestDiskPressureIsReportedOnce: a volume fills up, is full, its member does not answer, its Pod is created again, and it has room again.
func TestDiskPressureIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := healthy(t, 2).member(0, true, disk(replication.DiskRoomy)).member(1, true, disk(replication.DiskRoomy))
	status := previousStatus(s.cluster)
	for _, moment := range []struct {
		name          string
		change        func()
		reason, names string
		events        int
	}{
		{"there is room", func() {}, "", "", 0},
		{"a replica's volume fills up", func() { s.member(1, true, disk(replication.DiskPressure)) }, reasonVolumeFillsUp, "db-1", 1},
		{"nothing changes", func() {}, reasonVolumeFillsUp, "db-1", 0},
		{"the primary's is full", func() { s.member(0, true, disk(replication.DiskFull)) }, reasonDiskFull, "db-0", 1},
		{"the volume's size moves, as that of a share does", func() { s.seen.members[0].Status.Disk.Size-- }, reasonDiskFull, "db-0", 0},
		{"it does not answer, and the other one still has little", func() { s.silent(0) }, reasonDiskFull, "db-0", 0},
		{"its Pod is created again", func() { s.seen.members[0].Pod = false }, reasonDiskFull, "db-0", 0},
		{"it is back", func() {
			s.seen.members[0].Pod, s.seen.members[0].Status = true, &replication.Status{}
			s.member(0, true, disk(replication.DiskFull))
		}, reasonDiskFull, "db-0", 0},
		{"all have room, and one does not say so", func() { s.member(0, true, disk(replication.DiskRoomy)).silent(1) }, reasonDiskFull, "db-0", 0},
		{"it says so", func() {
			s.seen.members[1].Status = &replication.Status{Disk: replication.Disk{Size: 1 << 30, Free: 1 << 29}}
		}, "", "", 0},
	} {
		moment.change()
		before := status
		status = previousStatus(v1.MySQLCluster{ObjectMeta: s.cluster.ObjectMeta, Spec: s.cluster.Spec, Status: before})
		passResult{cluster: s.cluster, seen: s.seen}.describeDisk(&status)
		reason, message := "", ""
		if found := meta.FindStatusCondition(status.Conditions, conditionDisk); found != nil {
			reason, message = found.Reason, found.Message
		}
		if reason != moment.reason || !strings.Contains(message, moment.names) {
			t.Errorf("%s: %q %q, want %q of %q", moment.name, reason, message, moment.reason, moment.names)
		}
		if events := warningEvents(before, status); len(events) != moment.events {
			t.Errorf("%s: events %+v, want %d", moment.name, events, moment.events)
		}
	}
}

// TestAFullVolumeHidesNothingWorse: without a primary that takes writes, the full volume of a replica is not the problem to report.
func TestAFullVolumeHidesNothingWorse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"a replica's, and the primary is away": {func(s *scene) { s.member(2, true, disk(replication.DiskFull)).silent(0) }, "False PrimaryUnavailable"},
		"a replica's":                          {func(s *scene) { s.member(2, true, disk(replication.DiskFull)) }, "False DiskFull"},
		"the primary's": {func(s *scene) {
			s.member(0, true, disk(replication.DiskFull))
			s.seen.members[0].Status.State = replication.StatePromoting
		}, "False DiskFull"},
	} {
		s := healthy(t, 3)
		s.cluster.Status.Phase = v1.PhaseReady
		test.change(s)
		if got := conditionOf(t, s.report(nil, nil).status(), v1.ConditionReady); got != test.want {
			t.Errorf("%s: Ready is %s, want %s", name, got, test.want)
		}
	}
}

// TestCommitsThatHangAreTold: also if every member serves. The condition Durable reports replicas that are away.
func TestCommitsThatHangAreTold(t *testing.T) {
	t.Parallel()
	waits := func(seconds int64) func(*replication.Status) {
		return func(s *replication.Status) { s.Transactions.CommitWaitSeconds = seconds }
	}
	for name, test := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"for a moment": {func(s *scene) { s.member(0, true, waits(5)) }, "True AllMembersReady"},
		"for long":     {func(s *scene) { s.member(0, true, waits(20)) }, "False CommitsHang"},
		"on a replica, where only the applier commits": {func(s *scene) { s.member(1, true, waits(20)) }, "True AllMembersReady"},
		"while a replica is away":                      {func(s *scene) { s.member(0, true, waits(20)).silent(1) }, "False CommitsHang"},
		"since the user asked for that": {func(s *scene) {
			s.cluster.Spec.Durability.WhenReplicasLost = v1.Block
			s.member(0, true, waits(20))
			s.seen.members[0].Status.AcksShortSeconds = 20
		}, "False CommitsBlocked"},
	} {
		s := healthy(t, 3)
		s.cluster.Status.Phase = v1.PhaseReady
		test.change(s)
		if got := conditionOf(t, s.report(nil, nil).status(), v1.ConditionReady); got != test.want {
			t.Errorf("%s: Ready is %s, want %s", name, got, test.want)
		}
	}
}

// TestAVolumeThatFailsTellsWhyNoReplicaTakesOver: what a user can do about a full volume is said as well.
func TestAVolumeThatFailsTellsWhyNoReplicaTakesOver(t *testing.T) {
	t.Parallel()
	note := &replication.Note{Reason: replication.ReasonPrimaryDown, Message: "the volume of db-0 fails; no replica takes over: why"}
	for name, test := range map[string]struct {
		level    replication.DiskLevel
		reason   string
		remedies bool
	}{
		"it stands still, and commits hang": {replication.DiskRoomy, "PrimaryDown", false},
		"it is full, and commits hang":      {replication.DiskFull, "DiskFull", true},
	} {
		s := healthy(t, 3).member(0, true, disk(test.level))
		s.seen.members[0].Status.Transactions.CommitWaitSeconds = 60
		found := meta.FindStatusCondition(s.report(note, nil).status().Conditions, v1.ConditionReady)
		if found == nil || found.Reason != test.reason || !strings.Contains(found.Message, "no replica takes over: why") || strings.Contains(found.Message, diskRemedy) != test.remedies {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
