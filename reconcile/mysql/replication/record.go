package replication

import "slices"

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
	// InSync names the members that may acknowledge commits, including the primary, in order.
	InSync []string `json:"inSync,omitempty"`
	// RequiredAcks is how many members of InSync, in addition to the primary, hold every acknowledged transaction.
	RequiredAcks int `json:"requiredAcks"`
}

// LongestGTIDs limits, in bytes, how much a status repeats of a GTID set. The API server accepts no object of more than 1.5 MiB, and the
// record is written with it.
const LongestGTIDs = 16384

// Acknowledges reports whether the member may acknowledge commits of the primary.
func (r Record) Acknowledges(member string) bool { return slices.Contains(r.InSync, member) }

// Equal reports whether two records are the same.
func (r Record) Equal(other Record) bool {
	return r.Epoch == other.Epoch && r.Revision == other.Revision && r.Primary == other.Primary && r.RequiredAcks == other.RequiredAcks &&
		slices.Equal(r.InSync, other.InSync)
}

// before reports whether the record was written earlier than the other one.
func (r Record) before(other Record) bool {
	return r.Epoch < other.Epoch || r.Epoch == other.Epoch && r.Revision < other.Revision
}

// after returns the record with a later revision than the former one.
func (r Record) after(former Record) Record {
	r.Revision = max(r.Revision, former.Revision+1)
	return r
}

// with returns the record with the member added to InSync.
func (r Record) with(member string) Record {
	r.InSync = append(slices.Clone(r.InSync), member)
	sortMembers(r.InSync)
	return r
}

// without returns the record with the member removed from InSync.
func (r Record) without(member string) Record {
	r.InSync = slices.DeleteFunc(slices.Clone(r.InSync), func(name string) bool { return name == member })
	return r
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
