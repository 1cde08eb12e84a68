package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestSilenceCountsFromWhenItIsCertain: under one record of one cluster, in all passes that reach the member.
func TestSilenceCountsFromWhenItIsCertain(t *testing.T) {
	t.Parallel()
	fence := replication.Record{Epoch: 2, Revision: 5, FormerPrimary: "db-0", InSync: []string{"db-0", "db-1"}}
	later, chosen := fence, fence
	later.Epoch, chosen.FormerPrimary, chosen.Primary = 4, "", "db-1"
	silent := func(under replication.Record) *replication.Status {
		return &replication.Status{Protocol: replication.Protocol, ObservedUnder: under.Version(), Last: &replication.Assignment{Role: replication.RoleReplica, Record: under}}
	}
	acknowledges := silent(fence)
	acknowledges.Acknowledging = true
	start := time.Unix(50_000, 0)
	const uid, other = types.UID("uid"), types.UID("other")
	type look struct {
		began, took time.Duration
		uid         types.UID
		record      replication.Record
		status      *replication.Status
		want        time.Duration
	}
	for name, looks := range map[string][]look{
		"it counts from the end of the first look to the beginning of the last": {
			{0, 4 * time.Second, uid, fence, silent(fence), 0}, {10 * time.Second, time.Second, uid, fence, silent(fence), 6 * time.Second}},
		"a look that finds it otherwise": {
			{0, 0, uid, fence, silent(fence), 0}, {10 * time.Second, 0, uid, fence, acknowledges, 0}, {20 * time.Second, 0, uid, fence, silent(fence), 0}},
		"a look that does not reach it": {
			{0, 0, uid, fence, silent(fence), 0}, {10 * time.Second, 0, uid, fence, nil, 0}, {20 * time.Second, 0, uid, fence, silent(fence), 20 * time.Second}},
		"another record that replaces the same primary": {
			{0, 0, uid, fence, silent(fence), 0}, {10 * time.Second, 0, uid, later, silent(later), 0}, {12 * time.Second, 0, uid, later, silent(later), 2 * time.Second}},
		"a primary in between": {
			{0, 0, uid, fence, silent(fence), 0}, {10 * time.Second, 0, uid, chosen, silent(chosen), 0}, {20 * time.Second, 0, uid, fence, silent(fence), 0}},
		"another cluster of the same name": {
			{0, 0, uid, fence, silent(fence), 0}, {10 * time.Second, 0, other, fence, silent(fence), 0}},
		"no primary is replaced": {
			{0, 0, uid, chosen, silent(chosen), 0}, {10 * time.Second, 0, uid, chosen, silent(chosen), 0}},
	} {
		m := newMemory()
		for _, look := range looks {
			members := []replication.Member{{Name: "db-1", Status: look.status}}
			began := start.Add(look.began)
			cluster := v1.MySQLCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "db", UID: look.uid}}
			setRecord(&cluster.Status, look.record)
			m.noteSilent(cluster, members, began, began.Add(look.took))
			if got := members[0].SilentFor; got != look.want {
				t.Errorf("%s: after %s, silent for %s, want %s", name, look.began, got, look.want)
			}
		}
	}
}
