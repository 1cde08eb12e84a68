package replication

import "testing"

// TestWhatProvesThatAPrimaryIsReplaced: only then what it has alone may be dropped.
func TestWhatProvesThatAPrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		change func(last, next *Assignment)
		want   bool
	}{
		"another member is the primary of a later epoch": {func(_, _ *Assignment) {}, true},
		"none is yet":                     {func(_, next *Assignment) { next.Record.Primary = "" }, true},
		"it was a replica":                {func(last, _ *Assignment) { last.Role = RoleReplica }, false},
		"it stays the primary":            {func(_, next *Assignment) { next.Record.Primary = "db-0" }, false},
		"the epoch is the same":           {func(_, next *Assignment) { next.Record.Epoch = 1 }, false},
		"its commits waited for no other": {func(last, _ *Assignment) { last.Acks = 0 }, false},
		"the record went back in time":    {func(_, next *Assignment) { next.Record.Revision = 2 }, false},
		"the record is of that time":      {func(_, next *Assignment) { next.Record.Revision = 4 }, false},
		"the resource was applied again":  {func(_, next *Assignment) { next.Cluster = "b" }, false},
		"the resource is not known":       {func(last, next *Assignment) { last.Cluster, next.Cluster = "", "" }, false},
		"it never followed an assignment": {func(last, _ *Assignment) { *last = Assignment{} }, false},
	} {
		last := Assignment{Cluster: "a", Role: RolePrimary, Acks: 1, Record: Record{Epoch: 1, Revision: 4, Primary: "db-0"}}
		next := Assignment{Cluster: "a", Role: RoleReplica, Record: Record{Epoch: 2, Revision: 5, Primary: "db-1"}}
		test.change(&last, &next)
		if got := IsReplaced(&last, next); got != test.want {
			t.Errorf("%s: replaced is %t, want %t", story, got, test.want)
		}
	}
	if IsReplaced(nil, Assignment{Cluster: "a", Record: Record{Epoch: 2}}) {
		t.Error("a member without a last assignment is replaced")
	}
}
