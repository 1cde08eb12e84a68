package replication

import (
	"fmt"
	"reflect"
)

// Order among assignments. The network may delay a request for any time. An operator may hang between its decision and the request, or may
// have lost its Lease without noticing. What it then sends must not undo what a later record relies on. Three rules ensure that:
//
//   - An assignment carries the revision of the record that it follows from. The operator writes that record before it sends the
//     assignment. A member refuses a lower revision than it has accepted, and keeps the accepted revision on its volume.
//   - One revision has one meaning for a member: it refuses a second, different assignment of the same revision. An operator that must
//     change an assignment (more acknowledgements, silent members) first writes a record of the next revision, even if only the number
//     changes (bumpRevision). So an assignment that a member is seen to have accepted stays valid until there is a later record.
//   - An assignment repeats the token of the start of mysqld that it was decided for. So no member accepts an assignment for a Pod that is
//     gone.
//
// The promise of the record may therefore rely on an accepted assignment of the record's own revision, and on nothing older (raise).

// StaleError is the refusal of an assignment that comes too late.
type StaleError struct{ Reason string }

func (e *StaleError) Error() string { return "refuse assignment: " + e.Reason }

// Accept decides whether a member accepts an assignment. It returns nil, or a StaleError with the reason. held is the record that the
// member keeps. last is the assignment that it accepted last, if known. boot is the token of its mysqld's start.
func Accept(held Record, last *Assignment, boot string, next Assignment) error {
	offered := next.Record
	switch {
	case offered.Epoch < held.Epoch, offered.Epoch == held.Epoch && held.Primary != "" && offered.Primary != held.Primary:
		return &StaleError{fmt.Sprintf("it is of epoch %d with primary %q; this member holds epoch %d with primary %q", offered.Epoch, offered.Primary, held.Epoch, held.Primary)}
	case offered.before(held):
		return &StaleError{fmt.Sprintf("it is of revision %d; this member holds revision %d", offered.Revision, held.Revision)}
	case next.contradicts(last):
		return &StaleError{fmt.Sprintf("this member has already accepted a different assignment of revision %d", offered.Revision)}
	case next.Boot != boot:
		return &StaleError{"mysqld or the agent restarted after the operator decided it"}
	}
	return nil
}

// contradicts reports whether two assignments of one revision differ.
func (a Assignment) contradicts(last *Assignment) bool {
	if last == nil || a.Record.Epoch != last.Record.Epoch || a.Record.Revision != last.Record.Revision {
		return false
	}
	mine, theirs := a.terms(), last.terms()
	if mine.SourceAddress == "" || theirs.SourceAddress == "" {
		mine.SourceAddress, theirs.SourceAddress = "", "" // not known then: the same primary
	}
	return !reflect.DeepEqual(mine, theirs)
}

// terms is what an assignment demands, independent of the sender and of the start of mysqld. Fields that agents of older releases drop are
// not part of it. Those agents keep the assignment without such a field, which would contradict every assignment sent to them.
func (a Assignment) terms() Assignment {
	a.Protocol, a.Cluster, a.Boot, a.CopyLimit, a.Members, a.ConfirmedAt, a.Events, a.Donor = 0, "", "", 0, 0, 0, nil, nil
	a.Record.Joining, a.Record.LeaseLasts, a.Record.ForcedEpoch = nil, 0, 0
	return a
}

// Followed reports whether the member already follows the assignment, as far as its agent can tell. An agent of an older release does not
// repeat fields that it does not know.
func (a Assignment) Followed(now Status) bool {
	if now.Assignment == nil {
		return false
	}
	if now.Assignment.CopyLimit == 0 {
		a.CopyLimit = 0
	}
	if !now.KeepsEvents {
		a.Events = now.Assignment.Events
	}
	if now.Assignment.Members == 0 {
		a.Members = 0
	}
	if len(now.Assignment.Record.Joining) == 0 {
		a.Record.Joining = nil
	}
	if now.Protocol < Protocol {
		a.Cluster, a.SourceAddress, a.Lease = now.Assignment.Cluster, now.Assignment.SourceAddress, now.Assignment.Lease
		a.LeaseLasts, a.Record.LeaseLasts = now.Assignment.LeaseLasts, now.Assignment.Record.LeaseLasts
		a.Record.ForcedEpoch = now.Assignment.Record.ForcedEpoch
	}
	a.ConfirmedAt = now.Assignment.ConfirmedAt
	if a.mustConfirm(now) {
		return false
	}
	return reflect.DeepEqual(*now.Assignment, a)
}

// bumpRevision returns the record with its revision incremented if a member has already accepted a different assignment under the current
// one.
func bumpRevision(record Record, members []Member, wanted map[string]Assignment) Record {
	for _, member := range members {
		next, told := wanted[member.Name]
		if told && member.Status != nil && next.contradicts(member.Status.Last) {
			record.Revision++
			return record
		}
	}
	return record
}

// held is the record that the member reports to hold; the zero value if it does not answer.
func (m Member) held() Record {
	if m.Status == nil {
		return Record{}
	}
	return m.Status.Held
}

// heldLater returns the name of a member that holds a later record than the cluster's own, the primary first; empty if there is none. The
// operator sends only what it has written. So either the MySQLCluster went back in time (etcd was restored), or the member's volume is from
// elsewhere. A pass that sees an old copy of the resource comes to the same result. That is harmless, because the API server refuses its
// status.
func (c Cluster) heldLater() string {
	if primary, found := c.member(c.Record.Primary); found && c.Record.before(primary.held()) {
		return primary.Name
	}
	for _, member := range c.Members {
		if c.Record.before(member.held()) {
			return member.Name
		}
	}
	return ""
}

func heldLaterNote(member Member, record Record) *Note {
	held := member.held()
	return &Note{Reason: ReasonRecordOutdated, Message: fmt.Sprintf("member %s holds a later record (epoch %d, revision %d) than this resource (epoch %d, revision %d) and accepts no older one: the resource was restored from an older copy, or the member's volume belongs to another cluster. If the resource is the older one, delete it and apply it again: the operator adopts the data on the volumes as the members know it. If not, give %s its own volume back",
		member.Name, held.Epoch, held.Revision, record.Epoch, record.Revision, member.Name), Blocked: true}
}
