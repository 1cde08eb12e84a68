package replication

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// ScheduledEvent is an event of MySQL's event scheduler. Altered is when a user created or altered it last, in seconds since 1970: replicas
// have the same time.
type ScheduledEvent struct {
	Schema  string `json:"schema"`
	Name    string `json:"name"`
	Altered int64  `json:"altered"`
}

// ScheduledEvents are the events of a primary: Running, and ReplicaSide, which do not run because the member was a replica when they were
// created or altered. MySQL gives that status to each event on a replica, also to a disabled one (manual, "Replication of Invoked
// Features").
type ScheduledEvents struct {
	Running     []ScheduledEvent `json:"running,omitempty"`
	ReplicaSide []ScheduledEvent `json:"replicaSide,omitempty"`
	// ReplicaSideCount is how many of the latter there are in all.
	ReplicaSideCount int `json:"replicaSideCount,omitempty"`
}

// digest differs if other events must be enabled on the next primary.
func (e *ScheduledEvents) digest() uint64 {
	if e == nil {
		return 0
	}
	hash := fnv.New64a()
	for _, events := range [][]ScheduledEvent{e.Running, e.ReplicaSide} {
		for _, one := range events {
			for _, text := range []string{one.Schema, one.Name, strconv.FormatInt(one.Altered, 10)} {
				_, _ = hash.Write([]byte(text)) // never fails
				_, _ = hash.Write([]byte{0})
			}
		}
		_, _ = hash.Write([]byte{0})
	}
	return hash.Sum64()
}

// MostEvents is how many events the operator knows of a cluster.
const MostEvents = 200

// longestName is how many bytes a name has at most: 64 characters (manual, "Identifier Length Limits").
const longestName = 64 * 4

// EventsToEnable are the events that the new primary must enable: they ran on the former one, and no user has changed them since.
func EventsToEnable(ranBefore []ScheduledEvent, now ScheduledEvents) []ScheduledEvent {
	var due []ScheduledEvent
	ran := map[ScheduledEvent]bool{}
	for _, one := range ranBefore {
		ran[one] = true
	}
	for _, one := range now.ReplicaSide {
		if ran[one] {
			due = append(due, one)
		}
	}
	return due
}

// eventsFor are the events that a replica must enable if it becomes the primary: those that run on the primary, and those that ran on a
// former one and that this one has still to enable. Without a report of the primary, the replica keeps what it knows.
func (c Cluster) eventsFor(replica Status) []ScheduledEvent {
	var known []ScheduledEvent
	if replica.Last != nil {
		known = replica.Last.Events
	}
	primary := c.primaryStatus()
	if primary == nil || primary.State != StateWriting || primary.Events == nil {
		return known
	}
	all := slices.Concat(primary.Events.Running, EventsToEnable(known, *primary.Events))
	all = slices.DeleteFunc(all, func(event ScheduledEvent) bool { return max(len(event.Schema), len(event.Name)) > longestName })
	slices.SortFunc(all, func(one, other ScheduledEvent) int {
		return cmp.Or(strings.Compare(one.Schema, other.Schema), strings.Compare(one.Name, other.Name))
	})
	return all[:min(len(all), MostEvents)]
}
