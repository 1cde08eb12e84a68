package replication

import (
	"fmt"
	"reflect"
)

// Order among assignments. A request may be held up on its way for any time, and an operator may hang between its decision and the
// request, or have lost its Lease without knowing. What it sends then must not undo what a later record rests on. Three rules see to it:
//
//   - An assignment carries the revision of the record that it follows from, which is written before it is sent. A member refuses
//     one of a lower revision than it has accepted; it keeps that on its volume.
//   - One revision says one thing to a member: whoever comes second with something else is refused. An operator that has to say
//     something else (more acknowledgements, who is silent) first writes a record of the next revision, even if nothing but the
//     number changes (bumpRevision). So whatever a member is seen to have accepted stands until there is a later record.
//   - An assignment repeats the token of the start of mysqld that it was decided on. So one that was meant for a Pod that is gone
//     finds nobody.
//
// What the record promises may therefore rest on an assignment of the record's own revision that was accepted, and on nothing
// older (raise).

// StaleError refuses an assignment that comes too late.
type StaleError struct{ Reason string }

func (e *StaleError) Error() string { return "refuse assignment: " + e.Reason }

// Accept says whether a member takes an assignment: nil, or a StaleError with the reason. held is the record that the member keeps, last
// the assignment it accepted last, as far as it is known, and boot the token of its mysqld's start.
func Accept(held Record, last *Assignment, boot string, next Assignment) error {
	offered := next.Record
	switch {
	case offered.Epoch < held.Epoch, offered.Epoch == held.Epoch && held.Primary != "" && offered.Primary != held.Primary:
		return &StaleError{fmt.Sprintf("it is of epoch %d with primary %q; this member holds epoch %d with primary %q", offered.Epoch, offered.Primary, held.Epoch, held.Primary)}
	case offered.before(held):
		return &StaleError{fmt.Sprintf("it is of revision %d; this member holds revision %d", offered.Revision, held.Revision)}
	case next.contradicts(last):
		return &StaleError{fmt.Sprintf("this member was told something else in revision %d already", offered.Revision)}
	case next.Boot != boot:
		return &StaleError{"mysqld or the agent started anew since it was decided"}
	}
	return nil
}

// contradicts says whether two assignments of one revision differ.
func (a Assignment) contradicts(last *Assignment) bool {
	if last == nil || a.Record.Epoch != last.Record.Epoch || a.Record.Revision != last.Record.Revision {
		return false
	}
	return !reflect.DeepEqual(a.terms(), last.terms())
}

// terms are what an assignment asks for, whoever sends it and whichever start of mysqld it is for. What agents of older releases drop is
// none of it: they keep an assignment without it, which would contradict every one that they are sent.
func (a Assignment) terms() Assignment {
	a.Protocol, a.Boot, a.CopyLimit, a.Members = 0, "", 0, 0
	return a
}

// Followed says whether a member works to the assignment already, as far as its agent can tell: one of an older release does not repeat
// what it does not know.
func (a Assignment) Followed(now Status) bool {
	if now.Assignment == nil {
		return false
	}
	if now.Assignment.CopyLimit == 0 {
		a.CopyLimit = 0
	}
	if now.Assignment.Members == 0 {
		a.Members = 0
	}
	return reflect.DeepEqual(*now.Assignment, a)
}

// bumpRevision returns the record with its revision incremented if a member has already accepted other instructions under the current one.
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

// held is the record that a member says it holds; none when it does not answer.
func (m Member) held() Record {
	if m.Status == nil {
		return Record{}
	}
	return m.Status.Held
}

// heldLater names a member that holds a later record than the cluster's own, the primary first; empty where none does. No operator
// sends what is not written, so either the cluster resource went back in time (etcd was restored), or the member's volume is from
// elsewhere. A pass that merely looks at an old copy of the resource comes to the same and harms nobody: its status is not accepted.
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
	return &Note{ReasonRecordOutdated, fmt.Sprintf("member %s holds a later record (epoch %d, revision %d) than this resource (epoch %d, revision %d) and obeys no older one: the resource was restored from an older copy, or the member's volume is another cluster's. If the resource is the older one, delete it and apply it anew: the data on the volumes is adopted as the members know it; else give %s its own volume back",
		member.Name, held.Epoch, held.Revision, record.Epoch, record.Revision, member.Name), true}
}
