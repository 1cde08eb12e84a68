package agent

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestAFormerPrimaryKnowsThatAUserChoseTheNext: from any later record. Then it drops nothing that it has.
func TestAFormerPrimaryKnowsThatAUserChoseTheNext(t *testing.T) {
	t.Parallel()
	led := replication.Assignment{Role: replication.RolePrimary, Cluster: "one", Acks: 1, Record: replication.Record{Epoch: 4, Revision: 10, Primary: "db-0"}}
	replica := func(epoch, revision int64, primary string, forced int64) replication.Assignment {
		return replication.Assignment{Role: replication.RoleReplica, Cluster: "one", Record: replication.Record{Epoch: epoch, Revision: revision, Primary: primary, ForcedEpoch: forced}}
	}
	had, err := replication.ParseGTIDSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1")
	if err != nil {
		t.Fatal(err)
	}
	for name, told := range map[string]struct {
		then     []replication.Assignment
		isForced bool
	}{
		"the others chose":                                {[]replication.Assignment{replica(5, 11, "", 0), replica(5, 12, "db-1", 0)}, false},
		"a user chose":                                    {[]replication.Assignment{replica(5, 11, "", 0), replica(5, 12, "db-2", 5)}, true},
		"it was away meanwhile":                           {[]replication.Assignment{replica(5, 12, "db-2", 5)}, true},
		"the others chose again while it was away":        {[]replication.Assignment{replica(6, 14, "db-1", 5)}, true},
		"a user chose after the others":                   {[]replication.Assignment{replica(5, 12, "db-1", 0), replica(6, 14, "db-2", 6)}, true},
		"a user had chosen it":                            {[]replication.Assignment{replica(5, 12, "db-1", 4)}, false},
		"a user had chosen before":                        {[]replication.Assignment{replica(5, 11, "", 3), replica(5, 12, "db-1", 3)}, false},
		"the others chose again after it had followed":    {[]replication.Assignment{replica(5, 12, "db-2", 5), replica(6, 14, "db-1", 5)}, true},
		"it accepts the same record twice, and is forced": {[]replication.Assignment{replica(5, 12, "db-2", 5), replica(5, 12, "db-2", 5)}, true},
	} {
		kept := state{}.accepting(led)
		for _, next := range told.then {
			kept = kept.accepting(next)
		}
		if kept.Replaced == nil || kept.Replaced.IsForced != told.isForced {
			t.Errorf("%s: it is replaced: %+v", name, kept.Replaced)
			continue
		}
		var view replication.Observed
		kept.Replaced.Had, kept.Replaced.IsKnown = had, true
		(&Agent{kept: kept}).viewReplaced(&view)
		if mayDrop := !view.HadAsPrimary.Empty(); mayDrop == told.isForced {
			t.Errorf("%s: it may drop what it has alone: %t", name, mayDrop)
		}
	}
}
