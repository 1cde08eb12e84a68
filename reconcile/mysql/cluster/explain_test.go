package cluster

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// vanishing is a cluster of three at rest, whose primary does not answer. The replicas have got nothing from it for so long.
func vanishing(t *testing.T, quiet int) *scene {
	t.Helper()
	s := healthy(t, 3).silent(0)
	s.seen.now = time.Unix(1_785_553_445, 0)
	s.record.Revision, s.record.LeaseLasts = 12, replication.ShortLease
	s.cluster.Status = v1.MySQLClusterStatus{Epoch: 1, Revision: 12, Primary: "db-0", InSync: s.record.InSync, RequiredAcks: 1, LeaseMilliseconds: int32(replication.ShortLease.Milliseconds())}
	s.seen.members[0].Unreachable, s.seen.members[0].IsRunning = "ask the agent of db-0.db-pods.shop.svc: context deadline exceeded", true
	for ordinal := 1; ordinal < 3; ordinal++ {
		s.member(ordinal, true, func(status *replication.Status) {
			status.Protocol, status.Origin, status.Held, status.HeldRole = replication.Protocol, replication.OriginMember, s.record, replication.RoleReplica
			status.Received, status.Acknowledging, status.SourceSilentFor = status.Executed, true, time.Duration(quiet)*time.Second
		})
	}
	return s
}

// TestExplanation: it is what a pass would decide. The limits of the spec are there as they are in force.
func TestExplanation(t *testing.T) {
	t.Parallel()
	s := vanishing(t, 1)
	got := explanationOf(s.cluster, s.seen)
	if !got.Next.Changes || got.Next.Seconds != 1 || got.Next.What != "another member takes over from db-0 in epoch 2" || got.Next.Reason != replication.ReasonReplacingPrimary {
		t.Errorf("next: %+v", got.Next)
	}
	if got.Takeover.To != "db-1" || got.Takeover.Seconds <= int(replication.ShortLease.Seconds()) || got.Limits != (Limits{NotReadySeconds: 10, UnreachableSeconds: 2, IsReplacedUnreachable: true, ContinuesWithoutReplicas: true, GracePeriodSeconds: 10}) {
		t.Errorf("got %+v and %+v", got.Takeover, got.Limits)
	}
	if !slices.Equal(got.Unknown, []string{"for how long db-0 has not answered the operator"}) {
		t.Errorf("unknown: %q", got.Unknown)
	}
	s.cluster.Spec.Failover.WhenPrimaryUnreachable, s.cluster.Status.LeaseMilliseconds = v1.Wait, 0
	if got = explanationOf(s.cluster, s.seen); got.Next.Changes || !strings.Contains(got.Next.Command, "replace-primary=db-0.1.12") {
		t.Errorf("a cluster that waits for its primary: %+v", got.Next)
	}
}

// TestExplanationOfAnIdleOperator: no decision is shown that the operator does not make.
func TestExplanationOfAnIdleOperator(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*v1.MySQLCluster){
		"":          func(*v1.MySQLCluster) {},
		"is paused": func(cluster *v1.MySQLCluster) { cluster.Spec.Paused = true },
		"starts from a backup": func(cluster *v1.MySQLCluster) {
			cluster.Spec.FromBackup, cluster.Status = "nightly", v1.MySQLClusterStatus{}
		},
	} {
		s := vanishing(t, 3)
		change(&s.cluster)
		if got := explanationOf(s.cluster, s.seen).Idle; !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q", want, got)
		}
	}
}

// TestAnExplanationIsOfOneRecord: members follow a later record at once. One that changes without end is explained all the same.
func TestAnExplanationIsOfOneRecord(t *testing.T) {
	t.Parallel()
	for changes, want := range map[int]int64{0: 0, 1: 1, 2: 2, 9: 2} {
		reads := 0
		read := func() (*unstructured.Unstructured, v1.MySQLCluster, error) {
			cluster := v1.MySQLCluster{Status: v1.MySQLClusterStatus{Revision: int64(min(reads, changes))}}
			reads++
			return nil, cluster, nil
		}
		observe := func(_ *unstructured.Unstructured, cluster v1.MySQLCluster) (observed, error) {
			return observed{versions: strconv.FormatInt(cluster.Status.Revision, 10)}, nil
		}
		cluster, seen, err := observeUnchanged(read, observe)
		if err != nil || cluster.Status.Revision != want || seen.versions != strconv.FormatInt(want, 10) {
			t.Errorf("%d changes: revision %d, observed under %s: %v", changes, cluster.Status.Revision, seen.versions, err)
		}
	}
}
