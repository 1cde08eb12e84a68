package replication

import "testing"

// TestWhatIsInDoubt: commits may have returned without the copies that the record promises.
func TestWhatIsInDoubt(t *testing.T) {
	t.Parallel()
	order := func(role Role, promised int) *Assignment {
		return &Assignment{Role: role, Record: Record{RequiredAcks: promised}}
	}
	leads, follows, alone := order(RolePrimary, 1), order(RoleReplica, 1), order(RolePrimary, 0)
	type look struct {
		order    *Assignment
		isOpen   bool
		enforced int
		// off is how often MySQL had stopped waiting, made and pending are transactions of the server, and want those in doubt.
		off           int64
		made, pending string
		want          string
	}
	for story, looks := range map[string][]look{
		"commits wait": {
			{leads, true, 1, 0, "A:1", "", ""}, {leads, true, 1, 0, "A:1-5", "A:6", ""}, {leads, true, 2, 0, "A:1-9", "", ""}},
		"MySQL stops waiting, and waits again": {
			{leads, true, 1, 3, "A:1", "", ""}, {leads, true, 1, 3, "A:1-2", "", ""}, {leads, true, 1, 4, "A:1-5", "A:6", "A:2-6"}, {leads, true, 1, 4, "A:1-9", "", ""}},
		"MySQL stops waiting": {
			{leads, true, 1, 0, "A:1", "", ""}, {leads, true, 0, 1, "A:1-5", "", "A:2-5"}, {leads, true, 1, 1, "A:1-7", "", "A:2-7"}, {leads, true, 1, 1, "A:1-9", "", ""}},
		"no client commits meanwhile": {
			{leads, true, 1, 0, "A:1", "", ""}, {leads, true, 1, 1, "A:1", "", ""}, {leads, true, 1, 1, "A:1-2", "", ""}},
		"a user changes what commits wait for": {
			{leads, true, 1, 0, "A:1", "", ""}, {leads, true, 0, 0, "A:1-3", "", "A:2-3"}},
		"it opens, and MySQL stops waiting": {
			{leads, false, 0, 1, "A:1", "", ""}, {leads, false, 1, 1, "A:1", "", ""}, {leads, true, 1, 2, "A:1-3", "", "A:2-3"}},
		"commits wait again before it opens": {
			{leads, false, 0, 1, "A:1", "", ""}, {leads, false, 1, 2, "A:1-2", "", ""}, {leads, true, 1, 2, "A:1-3", "", ""}},
		"a user opens it before commits wait": {
			{leads, false, 0, 0, "A:1", "", ""}, {leads, true, 1, 0, "A:1-3", "", "A:2-3"}},
		"the record promises no copies": {
			{alone, true, 0, 0, "A:1", "", ""}, {alone, true, 0, 1, "A:1-3", "", ""}},
		"the promise ends": {
			{leads, true, 1, 0, "A:1", "", ""}, {alone, true, 0, 1, "A:1-3", "", ""}, {alone, true, 0, 1, "A:1-5", "", ""}},
		"the promise begins": {
			{alone, true, 0, 0, "A:1", "", ""}, {alone, true, 1, 0, "A:1-3", "", ""}, {leads, true, 1, 0, "A:1-5", "", ""}, {leads, true, 0, 0, "A:1-7", "", "A:4-7"}},
		"MySQL stops waiting as the promise begins": {
			{alone, true, 1, 0, "A:1", "", ""}, {leads, true, 1, 1, "A:1-3", "", "A:2-3"}},
		"the promise is for fewer copies": {
			{order(RolePrimary, 2), true, 2, 0, "A:1", "", ""}, {leads, true, 1, 0, "A:1-3", "", ""}},
		"too few copies for the promise": {
			{order(RolePrimary, 2), true, 2, 0, "A:1", "", ""}, {order(RolePrimary, 2), true, 1, 0, "A:1-3", "", "A:2-3"}},
		"it is replaced, and MySQL stops waiting before it closes": {
			{leads, true, 1, 0, "A:1", "", ""}, {follows, true, 1, 0, "A:1-3", "", ""}, {follows, false, 1, 1, "A:1-5", "", "A:2-5"}},
		"it is replaced, and lets commits end after it has closed": {
			{leads, true, 1, 0, "A:1", "", ""}, {follows, false, 1, 0, "A:1", "A:2", ""}, {follows, false, 0, 1, "A:1-2", "", ""}},
		"a replica": {
			{follows, false, 0, 0, "", "", ""}, {follows, true, 0, 0, "A:1", "", ""}},
		"the counter begins again": {
			{leads, true, 1, 3, "A:1", "", ""}, {leads, true, 1, 0, "A:1-3", "", ""}, {leads, true, 1, 1, "A:1-5", "", "A:2-5"}},
		"the agent has no assignment yet": {
			{nil, true, 1, 0, "A:1", "", ""}, {nil, true, 0, 0, "A:1-3", "", ""}},
	} {
		watch := AcksWatch{}
		for i, one := range looks {
			seen := AcksLook{Start: "first", IsOpen: one.isOpen, Enforced: one.enforced, SwitchedOff: one.off, Made: gtids(t, one.made), Pending: gtids(t, one.pending)}
			again := seen
			again.Start = "second"
			if _, found := watch.Look(again, one.order); !found.Empty() {
				t.Errorf("%s: after another start of mysqld, look %d finds %s in doubt", story, i+1, found)
			}
			next, found := watch.Look(seen, one.order)
			if want := gtids(t, one.want); !found.Equal(want) {
				t.Errorf("%s: look %d finds %s in doubt, want %s", story, i+1, found, want)
			}
			watch = next
		}
	}
}
