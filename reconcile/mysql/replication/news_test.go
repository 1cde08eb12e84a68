package replication

import (
	"testing"
	"time"
)

// TestNews: what an operator should learn at once, and what can wait for its next look.
func TestNews(t *testing.T) {
	t.Parallel()
	wellPrimary := Status{State: StateWriting, Boot: "first", AcksEnforced: 1, AckClients: 1, Lease: leaseOf(1, 20*time.Second, 20*time.Second)}
	wellReplica := Status{State: StateReplicating, Boot: "first"}
	tests := map[string]struct {
		status Status
		change func(*Status)
		isNews bool
	}{
		"mysqld does not answer":                     {wellPrimary, func(s *Status) { s.State = StateStarting }, true},
		"mysqld has started again":                   {wellPrimary, func(s *Status) { s.Boot = "second" }, true},
		"a replica is missing":                       {wellPrimary, func(s *Status) { s.AcksShortSeconds = 1 }, true},
		"it is still missing":                        {Status{AcksShortSeconds: 1}, func(s *Status) { s.AcksShortSeconds = 2 }, false},
		"the lease needs the operator":               {wellPrimary, func(s *Status) { s.Lease = leaseOf(1, 20*time.Second, 10*time.Second) }, true},
		"a replica is not heard any more":            {wellPrimary, func(s *Status) { s.Lease = &Lease{Needs: 1, Unheard: []string{"db-1"}} }, true},
		"a lease that is not needed ends":            {Status{Lease: leaseOf(0, 20*time.Second, 20*time.Second)}, func(s *Status) { s.Lease = leaseOf(0, 20*time.Second, 10*time.Second) }, false},
		"it gets more acknowledgements":              {wellPrimary, func(s *Status) { s.AckClients++ }, false},
		"nothing came for a moment":                  {wellReplica, func(s *Status) { s.SourceSilentFor = AlarmAfter - 1 }, false},
		"nothing has come for some seconds":          {wellReplica, func(s *Status) { s.SourceSilentFor = AlarmAfter }, true},
		"it has observed itself under an assignment": {wellReplica, func(s *Status) { s.ObservedUnder = Version{1, 2} }, true},
		"it acknowledges commits":                    {wellReplica, func(s *Status) { s.Acknowledging = true }, true},
		"mysqld refuses all writes":                  {wellPrimary, func(s *Status) { s.Closed = &Version{1, 2} }, true},
		"it has caught up":                           {Status{State: StateCatchingUp}, func(s *Status) { s.State = StateReplicating }, true},
		"it lets clients in again":                   {Status{RefusesClients: true}, func(s *Status) { s.RefusesClients = false }, true},
		"it has been far behind":                     {wellReplica, func(s *Status) { s.BehindLately = 10 }, true},
		"it is a little behind":                      {wellReplica, func(s *Status) { lag := int64(4); s.LagSeconds = &lag }, false},
		"it delays commits":                          {wellPrimary, func(s *Status) { s.DelaysCommits = true }, true},
		"its commits hang":                           {wellPrimary, func(s *Status) { s.Transactions.CommitWaitSeconds = 15 }, true},
		"its commits wait for a moment":              {wellPrimary, func(s *Status) { s.Transactions.CommitWaitSeconds = 14 }, false},
		"its volume stands still":                    {wellPrimary, func(s *Status) { s.Probe.StuckFor = StuckLeast }, true},
		"it uses another certificate":                {wellReplica, func(s *Status) { s.TLS = "second" }, true},
		"its volume fills":                           {wellReplica, func(s *Status) { s.Disk.Level = DiskFull }, true},
		"it has made hollow transactions":            {wellReplica, func(s *Status) { s.Hollow = gtids(t, "A:1") }, true},
		"it has made another one":                    {Status{Hollow: gtids(t, "A:1")}, func(s *Status) { s.Hollow = gtids(t, "A:2") }, true},
		"the password of root is refused":            {wellPrimary, func(s *Status) { s.RootError = "refused" }, true},
		"no client can log in to an account":         {wellPrimary, func(s *Status) { s.LockedOut = &Accounts{} }, true},
		"it found tables that are not InnoDB":        {wellPrimary, func(s *Status) { s.OtherEngines = &Tables{More: 1} }, true},
		"it has another release":                     {wellReplica, func(s *Status) { s.Version = "9.8.0" }, true},
		"a user has made an event":                   {wellPrimary, func(s *Status) { s.Events = &ScheduledEvents{Running: []ScheduledEvent{{"shop", "clean", 7}}} }, true},
		"a user has altered an event": {
			Status{Events: &ScheduledEvents{Running: []ScheduledEvent{{"shop", "clean", 7}}}},
			func(s *Status) { s.Events = &ScheduledEvents{Running: []ScheduledEvent{{"shop", "clean", 8}}} }, true,
		},
		"it has looked at its events again": {
			Status{Events: &ScheduledEvents{Running: []ScheduledEvent{{"shop", "clean", 7}}}},
			func(s *Status) { s.Events = &ScheduledEvents{Running: []ScheduledEvent{{"shop", "clean", 7}}} }, false,
		},
		"it lags": {wellReplica, func(s *Status) { s.Message = "lags" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := test.status
			test.change(&after)
			if isNews := after.News() != test.status.News(); isNews != test.isNews {
				t.Errorf("is news: %t, want %t", isNews, test.isNews)
			}
		})
	}
}
