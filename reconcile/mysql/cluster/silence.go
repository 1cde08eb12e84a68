package cluster

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// silence is since when each member has been seen not to acknowledge under one record of a cluster, whenever it answered.
type silence struct {
	uid   types.UID
	under replication.Version
	since map[string]time.Time
}

// noteSilent notes for how long members have been silent while a primary is replaced. began is when this pass began to ask them, and
// answered is when all had answered: only from then on is a member certain to be silent.
func (m *memory) noteSilent(cluster v1.MySQLCluster, members []replication.Member, began, answered time.Time) {
	key, uid, record := keyOf(cluster), cluster.UID, recordOf(cluster.Status)
	m.mu.Lock()
	defer m.mu.Unlock()
	if record.FormerPrimary == "" {
		delete(m.silences, key)
		return
	}
	known := m.silences[key]
	if known.uid != uid || known.under != record.Version() {
		known = silence{uid: uid, under: record.Version()}
	}
	known.since = stillSilent(known.since, record, members, began, answered)
	m.silences[key] = known
}

// reported is what each member of a cluster had when it reported last. The sets are texts, which take less memory.
type reported struct {
	uid  types.UID
	sets map[string]string
}

// noteReported notes what members have that report it, and sets Member.Had of the others. One whose volume is new has lost what it had.
func (m *memory) noteReported(key types.NamespacedName, uid types.UID, members []replication.Member) {
	now := reported{uid: uid, sets: map[string]string{}}
	for _, member := range members {
		if !member.HasReported() || member.Status.Origin != replication.OriginMember {
			continue
		}
		// A report may have 1 MiB.
		if has := member.Status.Worth().String(); len(has) <= replication.LongestGTIDs {
			now.sets[member.Name] = has
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.had[key]
	for i := range members {
		member := &members[i]
		if !member.HasReported() || member.Status.Origin != replication.OriginMember {
			if had, found := known.sets[member.Name]; found && known.uid == uid {
				now.sets[member.Name] = had
				member.Had, _ = replication.ParseGTIDSet(had) // it is one
			}
		}
	}
	if known.uid != uid || !maps.Equal(known.sets, now.sets) {
		m.had[key] = now
	}
}

// stillSilent sets SilentFor of the members, and returns since when those are silent that are.
func stillSilent(since map[string]time.Time, record replication.Record, members []replication.Member, began, answered time.Time) map[string]time.Time {
	still := map[string]time.Time{}
	for i := range members {
		member := &members[i]
		from, wasSilent := since[member.Name]
		switch {
		case wasSilent && member.Status == nil:
			still[member.Name] = from // it has accepted the record, and only a later one lets it acknowledge
		case !member.Status.IsSilent(record):
		case wasSilent:
			still[member.Name], member.SilentFor = from, max(0, began.Sub(from))
		default:
			still[member.Name] = answered
		}
	}
	return still
}
