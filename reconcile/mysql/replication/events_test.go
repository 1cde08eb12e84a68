package replication

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestReplicasKnowWhichEventsRun: those that run on the primary, and those that it has still to enable. Without its report, they keep what
// they know.
func TestReplicasKnowWhichEventsRun(t *testing.T) {
	t.Parallel()
	event := func(name string, altered int64) ScheduledEvent { return ScheduledEvent{"shop", name, altered} }
	a, b, changed := event("a", 1), event("b", 1), event("a", 2)
	many := make([]ScheduledEvent, 0, MostEvents+1)
	for n := range MostEvents + 1 {
		many = append(many, event(fmt.Sprintf("%04d", n), 1))
	}
	for story, test := range map[string]struct {
		known  []ScheduledEvent
		state  State
		events *ScheduledEvents
		want   []ScheduledEvent
	}{
		"two events run":                                       {nil, StateWriting, &ScheduledEvents{Running: []ScheduledEvent{b, a}}, []ScheduledEvent{a, b}},
		"a user has dropped one":                               {[]ScheduledEvent{a, b}, StateWriting, &ScheduledEvents{Running: []ScheduledEvent{b}}, []ScheduledEvent{b}},
		"a user has changed one":                               {[]ScheduledEvent{a}, StateWriting, &ScheduledEvents{Running: []ScheduledEvent{changed}}, []ScheduledEvent{changed}},
		"the next primary has enabled one of two":              {[]ScheduledEvent{a, b}, StateWriting, &ScheduledEvents{Running: []ScheduledEvent{b}, ReplicaSide: []ScheduledEvent{a}}, []ScheduledEvent{a, b}},
		"one was changed before the takeover":                  {[]ScheduledEvent{a}, StateWriting, &ScheduledEvents{ReplicaSide: []ScheduledEvent{changed}}, nil},
		"one was disabled before the takeover":                 {nil, StateWriting, &ScheduledEvents{ReplicaSide: []ScheduledEvent{a}}, nil},
		"the next primary has not looked yet":                  {[]ScheduledEvent{a}, StateWriting, nil, []ScheduledEvent{a}},
		"the primary starts again":                             {[]ScheduledEvent{a}, StateStarting, &ScheduledEvents{}, []ScheduledEvent{a}},
		"a name is longer than MySQL's":                        {nil, StateWriting, &ScheduledEvents{Running: []ScheduledEvent{event(strings.Repeat("x", longestName+1), 1), a}}, []ScheduledEvent{a}},
		"the primary reports more than the operator passes on": {nil, StateWriting, &ScheduledEvents{Running: many}, many[:MostEvents]},
	} {
		s := healthy(t, 2, 1).hears(0, test.state, func(_ *testing.T, s *Status) { s.Events = test.events })
		s.c.Members[1].Status.Last = &Assignment{Events: test.known}
		if got := assignments(s.c)["db-1"].Events; !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", story, got, test.want)
		}
	}
}

// TestEventsAreNoTermOfAnAssignment: the list changes under one record.
func TestEventsAreNoTermOfAnAssignment(t *testing.T) {
	t.Parallel()
	before := Assignment{Role: RoleReplica, Record: rec(1, 1, "db-0", "db-1"), Boot: "boot"}
	after := before
	after.Events = []ScheduledEvent{{"shop", "a", 1}}
	if err := Accept(before.Record, &before, "boot", after); err != nil {
		t.Errorf("the member refuses another list: %v", err)
	}
	if after.Followed(Status{Assignment: &before, KeepsEvents: true}) {
		t.Error("a member with another list counts as one that follows the assignment")
	}
	if !after.Followed(Status{Assignment: &before}) {
		t.Error("a member whose agent keeps no list does not count as one that follows the assignment")
	}
}
