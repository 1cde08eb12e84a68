package replication

import (
	"maps"
	"strings"
	"testing"
)

// donating is a healthy cluster of db-0 to db-3, and the member db-4, which needs a copy.
func donating(t *testing.T) *story {
	t.Helper()
	s := healthy(t, 5, 1)
	s.c.Record = rec(1, 1, "db-0", "db-1", "db-2", "db-3")
	s.hears(0, StateWriting, enforces(1, 3), wasPrimary, func(_ *testing.T, status *Status) { status.ServerUUID = uuidA })
	for ordinal := 1; ordinal <= 3; ordinal++ {
		s.hears(ordinal, StateReplicating, acking, fit)
	}
	return s.hears(4, StateWaiting, fresh, recipient)
}

func fit(_ *testing.T, s *Status) {
	lag := int64(0)
	s.LagSeconds, s.ServerUUID, s.Version, s.TablesWithoutRows = &lag, uuidB, "8.4.6", &Tables{}
}

func recipient(_ *testing.T, s *Status) { s.TakesDonor, s.Version = true, "8.4.6" }

// says changes what a member reports.
func (s *story) says(ordinal int, say ...saying) *story {
	s.t.Helper()
	for _, one := range say {
		one(s.t, s.grow(ordinal).Status)
	}
	return s
}

func lagging(seconds int64) saying {
	return func(_ *testing.T, s *Status) { s.LagSeconds = &seconds }
}

func tried(names ...string) saying { return func(_ *testing.T, s *Status) { s.TriedDonors = names } }

// copying is a member that has been assigned a donor of the story, and perhaps copies already.
func (s *story) copies(ordinal, from int, isRunning bool) *story {
	s.t.Helper()
	donor, status := s.grow(from), s.grow(ordinal).Status
	status.Assignment = &Assignment{Donor: &Donor{donor.Name, donor.Host, donor.Address, s.c.Port, uuidB}}
	if isRunning {
		status.State, status.CloneProgress = StateCloning, new(int)
	}
	return s
}

func TestWhichReplicaIsTheDonor(t *testing.T) {
	t.Parallel()
	only := func(t *testing.T) *story { // db-3 is the only one that can be a donor
		t.Helper()
		return donating(t).says(1, lagging(11)).says(2, lagging(11))
	}
	for name, test := range map[string]struct {
		story *story
		want  string // of db-4
	}{
		"not the one that would take over":            {donating(t), "db-2"},
		"the one with the least lag":                  {donating(t).says(2, lagging(3)), "db-3"},
		"that one also if it would take over":         {only(t).says(3, lagging(10)), "db-3"},
		"none that is too far behind":                 {only(t).says(3, lagging(11)), ""},
		"none whose lag is unknown":                   {only(t).says(3, func(_ *testing.T, s *Status) { s.LagSeconds = nil }), ""},
		"none that does not replicate":                {only(t).says(3, func(_ *testing.T, s *Status) { s.State = StateBroken }), ""},
		"none that does not answer":                   {only(t).silent(3), ""},
		"none that is not in sync":                    {only(t).with(func(c *Cluster) { c.Record = rec(1, 1, "db-0", "db-1", "db-2") }), ""},
		"none that follows an earlier primary":        {only(t).says(3, holding(Record{Epoch: 0, Primary: "db-0"})), ""},
		"none that may have forgotten":                {only(t).says(3, func(_ *testing.T, s *Status) { s.IsForgetful = true }), ""},
		"none that needs a copy itself":               {only(t).says(3, needsCopy), ""},
		"none that refuses clients":                   {only(t).says(3, func(_ *testing.T, s *Status) { s.RefusesClients = true }), ""},
		"none without rows":                           {only(t).says(3, func(_ *testing.T, s *Status) { s.TablesWithoutRows = &Tables{More: 1} }), ""},
		"none that may be without rows":               {only(t).says(3, func(_ *testing.T, s *Status) { s.TablesWithoutRows = nil }), ""},
		"none with transactions of its own":           {only(t).says(3, func(_ *testing.T, s *Status) { s.HasNoOthers = false }), ""},
		"none with hollow ones":                       {only(t).says(3, func(t *testing.T, s *Status) { t.Helper(); s.Hollow = gtids(t, "B:1") }), ""},
		"one that has more of the primary's":          {only(t).says(3, has("A:1-12")), "db-3"},
		"none without room":                           {only(t).says(3, func(_ *testing.T, s *Status) { s.Disk.Level = DiskPressure }), ""},
		"none whose volume fails":                     {only(t).says(3, func(_ *testing.T, s *Status) { s.Probe.StuckFor = StuckLeast }), ""},
		"none of another release of MySQL":            {only(t).says(3, func(_ *testing.T, s *Status) { s.Version = "8.4.7" }), ""},
		"any while the member's release is not known": {only(t).says(4, func(_ *testing.T, s *Status) { s.Version = "" }), "db-3"},
		"none whose Pod has no address":               {only(t).with(func(c *Cluster) { c.Members[3].Address = "" }), ""},
		"none whose agent speaks another protocol":    {only(t).says(3, func(_ *testing.T, s *Status) { s.Protocol-- }), ""},
		"none while the primary does not write":       {donating(t).says(0, func(_ *testing.T, s *Status) { s.State = StatePromoting }), ""},
		"none for an agent of an older release":       {donating(t).says(4, func(_ *testing.T, s *Status) { s.TakesDonor = false }), ""},
		"none for a member in sync":                   {donating(t).with(func(c *Cluster) { c.Record = c.Record.with("db-4") }), ""},
		"another one after a failure":                 {donating(t).says(4, tried("db-2")), "db-3"},
		"the primary after all failed":                {donating(t).says(4, tried("db-1", "db-2", "db-3")), ""},
		"the same as before, if another has less lag": {donating(t).says(3, lagging(2)).copies(4, 3, false), "db-3"},
		"another one if that one cannot any more":     {donating(t).says(3, lagging(20)).copies(4, 3, false), "db-2"},
		"not the one that another member copies":      {donating(t).hears(3, StateWaiting, fresh, recipient).copies(3, 2, true).with(func(c *Cluster) { c.Record = rec(1, 1, "db-0", "db-1", "db-2") }), "db-1"},
		"the one that it copies, whatever happens":    {donating(t).silent(3).copies(4, 3, true), "db-3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if donor := assignments(test.story.c)["db-4"].Donor; donor != nil {
				got = donor.Name
				from, _ := test.story.c.member(donor.Name)
				if from.Status != nil && *donor != (Donor{from.Name, from.Host, from.Address, 3306, from.Status.ServerUUID}) {
					t.Errorf("the donor is %+v", *donor)
				}
			}
			if got != test.want {
				t.Errorf("the donor is %q, want %q", got, test.want)
			}
		})
	}
}

// TestTwoMembersNeedCopies: they have different donors. What needs a copy for certain comes before what may need one.
func TestTwoMembersNeedCopies(t *testing.T) {
	t.Parallel()
	s := donating(t).hears(3, StateCatchingUp, recipient)
	s.c.Record = rec(1, 1, "db-0", "db-1", "db-2")
	told := maps.Collect(func(yield func(string, string) bool) {
		for name, donor := range donors(s.c) {
			if !yield(name, donor.Name) {
				return
			}
		}
	})
	if len(told) != 2 || told["db-4"] != "db-2" || told["db-3"] != "db-1" {
		t.Errorf("the donors are %v", told)
	}
}

// TestADonorIsNoTerm: agents of older releases do not repeat it, and another donor needs no record of its own.
func TestADonorIsNoTerm(t *testing.T) {
	t.Parallel()
	s := donating(t)
	wanted := assignments(s.c)["db-4"]
	without := wanted
	without.Donor = nil
	if wanted.contradicts(&without) || without.contradicts(&wanted) {
		t.Error("another donor needs a record of its own")
	}
	if wanted.Followed(Status{Assignment: &without, TakesDonor: true}) {
		t.Error("an agent does not get another donor")
	}
	s.says(4, func(_ *testing.T, status *Status) { status.TakesDonor = false })
	if !assignments(s.c)["db-4"].Followed(Status{Protocol: Protocol, Assignment: &without}) {
		t.Error("an agent that does not know donors gets its assignment again and again")
	}
}

// TestWhatAnAgentSeesOfADonor: the last look before it gives up its data.
func TestWhatAnAgentSeesOfADonor(t *testing.T) {
	t.Parallel()
	donor := Donor{Name: "db-2", Host: "db-2.pods", Address: "10.0.0.3", UUID: uuidB}
	type looks struct {
		before, after Source
		seen          SeenDonor
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, l *looks)
		want   string // empty for no problem
	}{
		"a replica that is behind":                                              {func(t *testing.T, l *looks) { t.Helper(); l.seen.Executed = gtids(t, "A:1-15,B:1-3") }, ""},
		"one that is ahead of the first look":                                   {func(t *testing.T, l *looks) { t.Helper(); l.seen.Executed = gtids(t, "A:1-30,B:1-3") }, ""},
		"another member has its address":                                        {func(_ *testing.T, l *looks) { l.seen.Host = "db-3.pods" }, "another address"},
		"its data was replaced":                                                 {func(_ *testing.T, l *looks) { l.seen.ServerUUID = uuidA }, "another address"},
		"it has become the primary":                                             {func(_ *testing.T, l *looks) { l.seen.Primary = true }, "takes writes"},
		"another release of MySQL":                                              {func(_ *testing.T, l *looks) { l.seen.Version = "8.4.7" }, "runs MySQL"},
		"another server leads at the primary's address":                         {func(_ *testing.T, l *looks) { l.after.ServerUUID = uuidB }, "replaced"},
		"the primary has purged what it lacks":                                  {func(t *testing.T, l *looks) { t.Helper(); l.after.Purged = gtids(t, "A:1-21") }, "could not send again"},
		"it lacks what another member made, which comes from the primary later": {func(t *testing.T, l *looks) { t.Helper(); l.seen.Executed = gtids(t, "A:1-20,B:1-2") }, ""},
		"it has what the primary does not have":                                 {func(t *testing.T, l *looks) { t.Helper(); l.seen.Executed = gtids(t, "A:1-20,B:1-4") }, "does not have"},
		"a client writes there":                                                 {func(t *testing.T, l *looks) { t.Helper(); l.seen.Pending = gtids(t, "B:4") }, "does not have"},
		"it has what the primary has in progress": {func(t *testing.T, l *looks) {
			t.Helper()
			l.seen.Executed, l.after.Pending = gtids(t, "A:1-20,B:1-4"), gtids(t, "B:4")
		}, ""},
		"it has what the primary got meanwhile": {func(t *testing.T, l *looks) {
			t.Helper()
			l.seen.Executed, l.after.Executed = gtids(t, "A:1-20,B:1-4"), gtids(t, "A:1-22,B:1-4")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := Source{ServerUUID: uuidA, Executed: gtids(t, "A:1-20,B:1-3"), Purged: gtids(t, "A:1-10")}
			l := looks{source, source, SeenDonor{Host: donor.Host, ServerUUID: uuidB, Version: "8.4.6", Executed: gtids(t, "A:1-20,B:1-3")}}
			test.change(t, &l)
			got := donor.Problem("8.4.6", l.before, l.seen, l.after)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("the problem is %q, want %q", got, test.want)
			}
		})
	}
}

// TestACopyCannotTellWhatIsHollow: only the member that made a transaction can. The primary matches it although the copy has it, too.
func TestACopyCannotTellWhatIsHollow(t *testing.T) {
	t.Parallel()
	for _, copiedFrom := range []string{uuidB, ""} {
		s := donating(t).says(3, has("A:1-10,B:1"), func(t *testing.T, status *Status) { t.Helper(); status.Hollow = gtids(t, "B:1") })
		s.says(0, func(_ *testing.T, status *Status) {
			status.HeldRole, status.Assignment = RolePrimary, &Assignment{Boot: status.Boot, Role: RolePrimary, Record: s.c.Record}
		})
		s.hears(4, StateErrant, has("A:1-10,B:1"), func(_ *testing.T, status *Status) { status.CopiedFrom = copiedFrom })
		if asked := matching(s.c); (asked != nil) != (copiedFrom != "") {
			t.Errorf("a copy of %q: the primary is asked to match %+v", copiedFrom, asked)
		}
	}
}
