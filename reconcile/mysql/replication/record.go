package replication

import "slices"

// Record is what a cluster knows about itself for certain. It changes only by a write with a resourceVersion precondition,
// before the act that it allows.
type Record struct {
	// Epoch counts the primaries a cluster has had. A member refuses assignments of an epoch lower than one it has seen.
	Epoch int64 `json:"epoch"`
	// Revision counts the records of a cluster: it rises with every one that is written, so that of two records of one epoch the later
	// one is known (order.go). The first is 1.
	Revision int64 `json:"revision,omitempty"`
	// Primary names the member that may take writes; empty while the cluster has none.
	Primary string `json:"primary,omitempty"`
	// InSync names the members that may acknowledge commits, the primary included, in order.
	InSync []string `json:"inSync,omitempty"`
	// RequiredAcks is how many members of InSync, beside the primary, hold every acknowledged transaction.
	RequiredAcks int `json:"requiredAcks"`
}

// Acknowledges says whether a member may acknowledge commits of the primary.
func (r Record) Acknowledges(member string) bool { return slices.Contains(r.InSync, member) }

// Equal says whether two records state the same.
func (r Record) Equal(other Record) bool {
	return r.Epoch == other.Epoch && r.Revision == other.Revision && r.Primary == other.Primary && r.RequiredAcks == other.RequiredAcks &&
		slices.Equal(r.InSync, other.InSync)
}

// before says whether a record was written earlier than the other one.
func (r Record) before(other Record) bool {
	return r.Epoch < other.Epoch || r.Epoch == other.Epoch && r.Revision < other.Revision
}

// after is the record with a later revision than the one that it replaces.
func (r Record) after(former Record) Record {
	r.Revision = max(r.Revision, former.Revision+1)
	return r
}

// with is the record with a member more in InSync.
func (r Record) with(member string) Record {
	r.InSync = append(slices.Clone(r.InSync), member)
	sortMembers(r.InSync)
	return r
}

// without is the record with a member less in InSync.
func (r Record) without(member string) Record {
	r.InSync = slices.DeleteFunc(slices.Clone(r.InSync), func(name string) bool { return name == member })
	return r
}

// FullAcks is how many acknowledgements a healthy cluster of so many members asks for: with the primary, a majority holds
// every acknowledged transaction. One member asks for none.
func FullAcks(members int) int { return members / 2 }

// sortMembers orders names by ordinal: a shorter name has the smaller ordinal, since all share the cluster's name.
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
