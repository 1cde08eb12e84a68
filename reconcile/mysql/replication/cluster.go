package replication

import (
	"cmp"
	"slices"
	"time"
)

// Cluster is everything that the operator's decision depends on, as observed in one pass. The primary is looked at before the
// other members, so that a replica that holds what the primary had then is known to hold it.
type Cluster struct {
	Record Record
	// Replicas is how many members the user wants; those with an ordinal below it are wanted.
	Replicas int
	// Scale is how many members the StatefulSet asks for now; 0 before it exists.
	Scale int
	// Members are all that have a Pod, a volume, or are wanted, in order of their ordinals.
	Members []Member
	// Port is where every mysqld listens.
	Port       int
	Durability Durability
	// CopyLimit is how fast a new member copies the primary's data at most, in bytes per second; 0 is DefaultCopyLimit.
	CopyLimit int64
}

// Durability says what happens when too few replicas are left to acknowledge commits.
type Durability struct {
	// Continue lets the primary go on alone after Grace, with the Record saying so; else commits wait for as long as it takes.
	Continue bool
	Grace    time.Duration
}

// Member is what the operator saw of one member.
type Member struct {
	Name    string
	Ordinal int
	// Host is the member's own stable DNS name.
	Host string
	// Pod says that its Pod exists, in whatever condition.
	Pod bool
	// OlderData says that its volume was made before the cluster resource: it may hold data of an earlier life.
	OlderData bool
	// Status is what its agent answered; nil when it did not, Unreachable then says why.
	Status      *Status
	Unreachable string
}

// Decision is what has to be true next. When Record differs from the observed one, it has to be written before anything else is
// done: the rest of the decision then follows from the written record in the next pass.
type Decision struct {
	Record      Record
	Assignments map[string]Assignment
	// Scale is how many members the StatefulSet shall ask for.
	Scale int
	// Matching is what the primary is asked beside its assignment; nil for nothing.
	Matching *Matching
	// ReadFromPrimary routes reads to the primary, since no replica can serve them.
	ReadFromPrimary bool
	// Note says, for people, what the cluster waits for, or why it stands still; nil when nothing is the matter.
	Note *Note
}

// Reason is a condition's reason for what Decide waits for.
type Reason string

const (
	// ReasonWaitingForMembers: members that must be heard first do not answer yet.
	ReasonWaitingForMembers Reason = "WaitingForMembers"
	// ReasonAdoptionBlocked: retained data was found, and none of it is certain to be the newest.
	ReasonAdoptionBlocked Reason = "AdoptionBlocked"
	// ReasonPrimaryDataLost: the primary on record came back without data that it had.
	ReasonPrimaryDataLost Reason = "PrimaryDataLost"
	// ReasonPrimaryWouldLeave: scaling in would remove the primary.
	ReasonPrimaryWouldLeave Reason = "PrimaryWouldLeave"
	// ReasonScalingIn: members are being taken out of the cluster.
	ReasonScalingIn Reason = "ScalingIn"
	// ReasonRecordOutdated: a member holds a later record than the cluster resource.
	ReasonRecordOutdated Reason = "RecordOutdated"
	// ReasonAgentRelease: agents speak another protocol than the operator.
	ReasonAgentRelease Reason = "AgentOfAnotherRelease"
)

// Note is a reason with its message. Blocked says that nothing will change without somebody's help.
type Note struct {
	Reason  Reason
	Message string
	Blocked bool
}

// Decide says what has to be true next.
func Decide(c Cluster) Decision {
	decision := decide(c)
	// Whatever else is decided: reads must not lose their way while the record changes.
	decision.ReadFromPrimary = c.servingReplicas() == 0
	return decision
}

func decide(c Cluster) Decision {
	if c.Record.Primary == "" {
		return appoint(c)
	}
	decision := Decision{Record: c.Record, Scale: c.Scale}
	if lost := c.primaryDataLost(); lost != "" {
		decision.Note = &Note{ReasonPrimaryDataLost, lost, true}
		return decision
	}
	if c.heldLater() == c.Record.Primary {
		primary, _ := c.member(c.Record.Primary)
		decision.Note = heldLaterNote(primary, c.Record)
		return decision
	}
	wanted := assignments(c)
	next := nextRecord(c)
	if next.Equal(c.Record) {
		next = bumpRevision(c.Record, c.Members, wanted)
	}
	if !next.Equal(c.Record) {
		decision.Record = next.after(c.Record)
		return decision
	}
	decision.Scale, decision.Note = scale(c)
	decision.Assignments, decision.Matching = wanted, matching(c)
	if decision.Note == nil {
		decision.Note = memberWarnings(c)
	}
	return decision
}

// memberWarnings describes a member that needs attention but does not block the cluster; nil if there is none.
func memberWarnings(c Cluster) *Note {
	if name := c.heldLater(); name != "" {
		member, _ := c.member(name)
		return heldLaterNote(member, c.Record)
	}
	return strangers(c)
}

func (c Cluster) member(name string) (Member, bool) {
	for _, member := range c.Members {
		if member.Name == name {
			return member, true
		}
	}
	return Member{}, false
}

func (c Cluster) wanted(member Member) bool { return member.Ordinal < c.Replicas }

// replicas are the members other than the primary.
func (c Cluster) replicas() []Member {
	var replicas []Member
	for _, member := range c.Members {
		if member.Name != c.Record.Primary {
			replicas = append(replicas, member)
		}
	}
	return replicas
}

func (c Cluster) servingReplicas() int {
	count := 0
	for _, member := range c.replicas() {
		if c.wanted(member) && member.Status != nil && member.Status.State == StateReplicating {
			count++
		}
	}
	return count
}

// assignments say what every member that answers is asked to be.
func assignments(c Cluster) map[string]Assignment {
	primary, known := c.member(c.Record.Primary)
	if !known {
		return nil
	}
	all := map[string]Assignment{}
	if primary.Status != nil {
		all[primary.Name] = Assignment{Protocol: Protocol, Record: c.Record, Role: RolePrimary, Boot: primary.Status.Boot, Acks: acks(c), Silent: c.silent(), Members: c.Replicas}
	}
	for _, member := range c.replicas() {
		if member.Status == nil || c.Record.before(member.held()) {
			continue
		}
		all[member.Name] = Assignment{
			Protocol: Protocol, Record: c.Record, Role: RoleReplica, Boot: member.Status.Boot,
			InSync:      c.Record.Acknowledges(member.Name),
			Acknowledge: c.Record.Acknowledges(member.Name) && c.wanted(member) && !toldSilent(primary, member.Name),
			SourceHost:  primary.Host, SourcePort: c.Port, CopyLimit: cmp.Or(c.CopyLimit, DefaultCopyLimit),
		}
	}
	return all
}

// toldSilent says whether the primary was told that a member is silent; until it is told otherwise, the member has to be.
func toldSilent(primary Member, name string) bool {
	return primary.Status != nil && primary.Status.Assignment != nil && slices.Contains(primary.Status.Assignment.Silent, name)
}

// acks is how many acknowledgements the primary is asked to wait for: what the Record promises, or more when enough replicas are
// there to give them; the Record follows once that is in force.
//
// Where the user wants commits to wait for replicas whatever happens, a primary asks for them from its first commit on, and also while
// the record can promise nothing because the last replica's data is being replaced.
func acks(c Cluster) int {
	if !c.Durability.Continue {
		return max(c.Record.RequiredAcks, FullAcks(c.Replicas))
	}
	possible, connected := 0, 0
	if status := c.primaryStatus(); status != nil {
		connected = status.AckClients
	}
	for _, member := range c.replicas() {
		if c.wanted(member) && c.Record.Acknowledges(member.Name) && acknowledges(member) {
			possible++
		}
	}
	return max(c.Record.RequiredAcks, min(FullAcks(c.Replicas), possible, connected))
}

func acknowledges(member Member) bool {
	return member.Status != nil && member.Status.Acknowledging && member.Status.State == StateReplicating
}

// scale says how many members there shall be. Members leave only from the end, only replicas, and only once no commit waits for
// more acknowledgements than the remaining ones can give.
func scale(c Cluster) (int, *Note) {
	primary, _ := c.member(c.Record.Primary)
	if !c.wanted(primary) {
		return max(c.Scale, primary.Ordinal+1), &Note{ReasonPrimaryWouldLeave, "scaling in would remove " + primary.Name + ", which is the primary; raise spec.replicas again", true}
	}
	if c.Replicas >= c.Scale {
		return c.Replicas, nil
	}
	if primary.Status == nil || primary.Status.State != StateWriting {
		return c.Scale, &Note{ReasonScalingIn, "scaling in waits for the primary " + primary.Name, false}
	}
	if primary.Status.AcksEnforced > FullAcks(c.Replicas) {
		return c.Scale, &Note{ReasonScalingIn, "scaling in waits for the primary " + primary.Name + " to ask for fewer acknowledgements", false}
	}
	return c.Replicas, nil
}
