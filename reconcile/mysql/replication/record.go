package replication

import (
	"cmp"
	"slices"
	"time"
)

// Version identifies one record of a cluster. The zero value identifies none.
type Version struct {
	Epoch    int64 `json:"epoch"`
	Revision int64 `json:"revision"`
}

// Record is what a cluster knows about itself for certain. It changes only by a write with a resourceVersion precondition, before the
// action that the change allows.
type Record struct {
	// Epoch counts the primaries that the cluster has had. A member refuses assignments of a lower epoch than one it has seen.
	Epoch int64 `json:"epoch"`
	// Revision counts the records of a cluster. It rises with every record that is written, so it shows which of two records of one epoch
	// is the later one (order.go). The first is 1.
	Revision int64 `json:"revision,omitempty"`
	// Primary names the member that may take writes; empty while the cluster has no primary.
	Primary string `json:"primary,omitempty"`
	// FormerPrimary names a primary that is replaced, until the next one is chosen; empty otherwise.
	FormerPrimary string `json:"formerPrimary,omitempty"`
	// InSync names the members that may acknowledge commits, including the primary, in order.
	InSync []string `json:"inSync,omitempty"`
	// Joining names the members that may follow the primary and must not acknowledge, in order. The primary refuses all members that are
	// neither here nor in InSync.
	Joining []string `json:"joining,omitempty"`
	// RequiredAcks is how many members of InSync, in addition to the primary, hold every acknowledged transaction.
	RequiredAcks int `json:"requiredAcks"`
	// LeaseLasts means that the primary takes writes only while it has a lease for RequiredAcks replicas, which lasts so long at most
	// after the last evidence that it leads (lease.go). 0 means that it may lead without a lease.
	LeaseLasts time.Duration `json:"leaseLasts,omitempty"`
	// ForcedEpoch is the epoch of the last primary that may have lacked acknowledged commits, because a user made it the primary (force.go); 0
	// for none.
	ForcedEpoch int64 `json:"forcedEpoch,omitempty"`
}

// LongestGTIDs limits, in bytes, how much a status repeats of a GTID set. The API server accepts no object of more than 1.5 MiB, and the
// record is written with it.
const LongestGTIDs = 16384

// Acknowledges reports whether the member may acknowledge commits of the primary.
func (r Record) Acknowledges(member string) bool { return slices.Contains(r.InSync, member) }

// Allows reports whether the member may follow the primary.
func (r Record) Allows(member string) bool {
	return r.Acknowledges(member) || slices.Contains(r.Joining, member)
}

// ReplicasInSync are the members in sync besides the primary.
func (r Record) ReplicasInSync() []string { return removed(r.InSync, r.Primary) }

// Equal reports whether two records are the same.
func (r Record) Equal(other Record) bool {
	return r.Epoch == other.Epoch && r.Revision == other.Revision && r.Primary == other.Primary && r.FormerPrimary == other.FormerPrimary && r.RequiredAcks == other.RequiredAcks && r.LeaseLasts == other.LeaseLasts && r.ForcedEpoch == other.ForcedEpoch &&
		slices.Equal(r.InSync, other.InSync) && slices.Equal(r.Joining, other.Joining)
}

// lastPrimary names the primary, or the former one while the next is chosen.
func (r Record) lastPrimary() string { return cmp.Or(r.Primary, r.FormerPrimary) }

// witnessesNeeded is how many members in sync, other than the last primary, together have every acknowledged commit, whichever they are.
func (r Record) witnessesNeeded() int {
	return len(removed(r.InSync, r.lastPrimary())) - r.RequiredAcks + 1
}

// Version returns the record's version.
func (r Record) Version() Version { return Version{r.Epoch, r.Revision} }

// before reports whether the record was written earlier than the other one.
func (r Record) before(other Record) bool {
	return r.Epoch < other.Epoch || r.Epoch == other.Epoch && r.Revision < other.Revision
}

// after returns the record with a later revision than the former one.
func (r Record) after(former Record) Record {
	r.Revision = max(r.Revision, former.Revision+1)
	return r
}

// with returns the record with the member moved to InSync.
func (r Record) with(member string) Record {
	r.InSync, r.Joining = added(r.InSync, member), removed(r.Joining, member)
	return r
}

// promising returns the record with another promise. A lease for fewer replicas does not keep a stronger one.
func (r Record) promising(acks int) Record {
	if acks == 0 || acks > r.RequiredAcks {
		r.LeaseLasts = 0
	}
	r.RequiredAcks = acks
	return r
}

// joining returns the record with the member added to Joining.
func (r Record) joining(member string) Record {
	r.Joining = added(r.Joining, member)
	return r
}

// without returns the record with the member removed.
func (r Record) without(member string) Record {
	r.InSync, r.Joining = removed(r.InSync, member), removed(r.Joining, member)
	return r
}

func added(names []string, name string) []string {
	names = append(slices.Clone(names), name)
	sortMembers(names)
	return names
}

// removed returns nil instead of an empty list, as a record that was read does.
func removed(names []string, name string) []string {
	left := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
	if len(left) == 0 {
		return nil
	}
	return left
}

// FullAcks is how many acknowledgements a healthy cluster of this many members requires: together with the primary, a majority holds every
// acknowledged transaction. A single member requires none.
func FullAcks(members int) int { return members / 2 }

// sortMembers sorts names by ordinal. All names share the cluster's name, so a shorter name has the smaller ordinal.
func sortMembers(names []string) {
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		if a < b {
			return -1
		}
		if a > b {
			return 1
		}
		return 0
	})
}
