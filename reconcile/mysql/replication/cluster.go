package replication

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cluster is everything that the operator's decision depends on, as observed in one pass. The operator observes the primary before the
// other members. So a replica that holds what the primary had then is known to hold it.
type Cluster struct {
	// UID is the UID of the MySQLCluster.
	UID    string
	Record Record
	// Replicas is how many members the user wants. A member is wanted if its ordinal is lower.
	Replicas int
	// Scale is the current number of replicas of the StatefulSet; 0 before it exists.
	Scale int
	// Members are all members that are wanted, or have a Pod or a volume, ordered by ordinal.
	Members []Member
	// Port is the port on which every mysqld listens.
	Port       int
	Durability Durability
	// IsUpdating means that an update of the members' Pods is not complete: Kubernetes restarts them, or it is held back from them.
	IsUpdating bool
	// CopyLimit limits how fast a new member copies another one's data, in bytes per second; 0 means DefaultCopyLimit.
	CopyLimit int64
	// HasContinued means that the primary was replaced a short while ago, and continues, because no other member could take over.
	HasContinued bool
	// SinceTakeover is how long ago the last takeover began; 0 if none is known.
	SinceTakeover time.Duration
	// WantsLease means that the primary needs a lease, so that it can be replaced while nothing answers for it.
	WantsLease bool
	// Limits are for how long a primary may be away before a replica takes over.
	Limits Limits
	// Request is the request of a user to replace a primary whose agent does not answer (Record.names); empty for none.
	Request string
	// Force is the request of a user to make a member the primary although acknowledged commits may be missing there (force.go); empty for
	// none.
	Force string
}

// Durability is the policy for the time when too few replicas are left to acknowledge commits.
type Durability struct {
	// Continue lets the primary continue alone after Grace, once the Record says so. Otherwise commits wait without a limit.
	Continue bool
	Grace    time.Duration
	// Least is how many acknowledgements commits wait for even if the Record promises fewer, as far as the wanted members can give them.
	Least int
}

// Member is what the operator observed of one member.
type Member struct {
	Name    string
	Ordinal int
	// Host is the member's own stable DNS name, Address the IP address of its Pod; empty while it has none.
	Host, Address string
	// Pod reports whether the member's Pod exists, in any condition.
	Pod bool
	// OlderData reports whether the member's volume is older than the MySQLCluster: it may hold data of an earlier cluster of the same
	// name.
	OlderData bool
	// Status is what the agent answered; nil if it did not answer. Unreachable then says why.
	Status      *Status
	Unreachable string
	// UnheardFor is for how long this operator has asked and the agent has not answered; 0 while it answers.
	UnheardFor time.Duration
	// MissingFor is for how long it has not answered, up to when this pass began, although Kubernetes says that the agent runs; 0 while
	// Kubernetes does not.
	MissingFor time.Duration
	// IsRunning reports whether Kubernetes says that the member's agent runs, and does not end it.
	IsRunning bool
	// SilentFor is for how long this operator has seen that the member has stopped acknowledging under the very record (IsSilent); 0 if it
	// does not answer, or has not stopped.
	SilentFor time.Duration
	// Had are the transactions that this operator has seen on a member that does not answer now; empty if it has not seen any.
	Had GTIDSet
	// UnfencedFor is for how long this operator has seen that the agent answers and the member has not stopped acknowledging, while a primary
	// is replaced; otherwise 0.
	UnfencedFor time.Duration
}

// Decision is what must be true next. If Record differs from the observed record, it must be written before anything else is done. The rest
// of the decision then follows from the written record in the next pass.
type Decision struct {
	Record      Record
	Assignments map[string]Assignment
	// Scale is the number of replicas that the StatefulSet must have.
	Scale int
	// Matching is a request to the primary in addition to its assignment; nil for none.
	Matching *Matching
	// ReadFromPrimary routes reads to the primary, because no replica can serve them.
	ReadFromPrimary bool
	// Note tells users what the cluster waits for, or why it is blocked; nil if there is nothing to report.
	Note *Note
}

// Reason is the reason of a condition: what Decide waits for.
type Reason string

const (
	// ReasonWaitingForMembers: members whose status is needed first do not answer yet.
	ReasonWaitingForMembers Reason = "WaitingForMembers"
	// ReasonAdoptionBlocked: retained data was found, and none of it is certain to be the newest.
	ReasonAdoptionBlocked Reason = "AdoptionBlocked"
	// ReasonPrimaryDataLost: the primary on record came back without data that it had.
	ReasonPrimaryDataLost Reason = "PrimaryDataLost"
	// ReasonPrimaryDown: the primary has failed, and no other member may take over by itself. Its mysqld does not run, its container
	// restarts, its replicas are cut off from it, its volume fails, or its agent does not answer.
	ReasonPrimaryDown Reason = "PrimaryDown"
	// ReasonReplacingPrimary: another member takes over from the primary.
	ReasonReplacingPrimary Reason = "ReplacingPrimary"
	// ReasonPrimaryWouldLeave: scaling in would remove the primary.
	ReasonPrimaryWouldLeave Reason = "PrimaryWouldLeave"
	// ReasonScalingIn: members are being removed from the cluster.
	ReasonScalingIn Reason = "ScalingIn"
	// ReasonRecordOutdated: a member holds a later record than the MySQLCluster.
	ReasonRecordOutdated Reason = "RecordOutdated"
	// ReasonSingleMember: the cluster has one member.
	ReasonSingleMember Reason = "SingleMember"
	// ReasonCommitsNotReplicated: acknowledged commits may be on the primary alone.
	ReasonCommitsNotReplicated Reason = "CommitsNotReplicated"
	// ReasonErrantMember: a member has transactions that the primary does not have.
	ReasonErrantMember Reason = "ErrantMember"
	// ReasonReplicationBroken: the applier of a replica has failed.
	ReasonReplicationBroken Reason = "ReplicationBroken"
	// ReasonIncompleteMembers: the rows of tables that are not InnoDB are missing on all members that could take over.
	ReasonIncompleteMembers Reason = "TablesWithoutRows"
	// ReasonTooFewReplicas: the replicas that answer may not have all acknowledged commits.
	ReasonTooFewReplicas Reason = "TooFewReplicas"
	// ReasonReplicasCatchUp: the replicas that could take over have to apply what they received first.
	ReasonReplicasCatchUp Reason = "ReplicasCatchUp"
	// ReasonReplicaCanTakeOver: a replica could take over from the primary.
	ReasonReplicaCanTakeOver Reason = "ReplicaCanTakeOver"
	// ReasonAgentRelease: some agents speak another protocol than the operator.
	ReasonAgentRelease Reason = "AgentOfAnotherRelease"
)

// Note is a reason with its message. Blocked means that nothing changes until a user acts. Request is what a user may ask for in this
// situation (Cluster.Request), Force the same (Cluster.Force); empty for nothing. Refusal is why Cluster.Force does not hold, or not yet.
type Note struct {
	Reason  Reason
	Message string
	Blocked bool
	Request string
	Force   string
	Refusal string
}

// Decide returns what must be true next.
func Decide(c Cluster) Decision {
	waits := c.scalingInWaits()
	if waits != nil {
		c.Replicas = c.Scale
	}
	decision := decide(c)
	decision.Note = cmp.Or(decision.Note, waits)
	// Reads must be routed correctly while the record changes, regardless of the rest of the decision. While a primary is replaced, they
	// stay at the replicas.
	decision.ReadFromPrimary = c.servingReplicas() == 0 && c.Record.FormerPrimary == ""
	return decision
}

func decide(c Cluster) Decision {
	if c.Record.FormerPrimary != "" {
		return handOver(c)
	}
	if c.Record.Primary == "" {
		return appoint(c)
	}
	decision := Decision{Record: c.Record, Scale: c.Scale}
	if lost, mayReplace := c.primaryDataLost(); mayReplace {
		return c.replacePrimary(decision, lost)
	} else if lost != "" {
		decision.Note = &Note{Reason: ReasonPrimaryDataLost, Message: lost, Blocked: true}
		return decision
	}
	if c.heldLater() == c.Record.Primary {
		primary, _ := c.member(c.Record.Primary)
		decision.Note = heldLaterNote(primary, c.Record)
		return decision
	}
	if decision = c.replaceDown(decision); decision.Record.FormerPrimary != "" || c.holdsStart() {
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
	var note *Note
	decision.Scale, note = scale(c)
	if decision.Note != nil { // the primary is down, and no other member can take over
		decision.Scale = max(decision.Scale, c.scaleToAnswer())
	}
	decision.Assignments, decision.Matching = wanted, matching(c)
	decision.Note = cmp.Or(decision.Note, note, memberWarnings(c))
	return decision
}

// memberWarnings describes a member that needs attention but does not block the cluster; nil if there is none.
func memberWarnings(c Cluster) *Note {
	if name := c.heldLater(); name != "" {
		member, _ := c.member(name)
		return heldLaterNote(member, c.Record)
	}
	return otherProtocolNote(c)
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
		if c.wanted(member) && member.Status != nil && member.Status.State == StateReplicating && !member.Status.RefusesClients {
			count++
		}
	}
	return count
}

// assignments returns the assignment of every member that answers.
func assignments(c Cluster) map[string]Assignment {
	primary, known := c.member(c.Record.Primary)
	if !known {
		return nil
	}
	all := map[string]Assignment{}
	if primary.Status != nil {
		all[primary.Name] = Assignment{Protocol: Protocol, Cluster: c.UID, Record: c.Record, Role: RolePrimary, Boot: primary.Status.Boot, Acks: acks(c), Lease: c.lease(), LeaseLasts: c.leaseLasts(), Silent: c.silent(), Members: c.Replicas}
	}
	if c.Record.isInDoubt(primary) || c.mayBeInDoubt(primary) {
		return all // the others keep the record by which it was chosen
	}
	copied := donors(c)
	for _, member := range c.replicas() {
		if member.Status == nil || c.Record.before(member.held()) || !member.Status.keepsWhatIsForgotten(c.Record) {
			continue
		}
		all[member.Name] = Assignment{
			Protocol: Protocol, Cluster: c.UID, Record: c.Record, Role: RoleReplica, Boot: member.Status.Boot,
			InSync:      c.Record.Acknowledges(member.Name),
			Acknowledge: c.Record.Acknowledges(member.Name) && c.wanted(member) && !toldSilent(primary, member.Name),
			SourceHost:  primary.Host, SourceAddress: primary.addressFor(*member.Status), SourcePort: c.Port, CopyLimit: cmp.Or(c.CopyLimit, DefaultCopyLimit),
			Events: c.eventsFor(*member.Status), Donor: copied[member.Name],
		}
	}
	return all
}

// addressFor returns the address of this primary for a replica. While the primary's Pod has none, the replica keeps the one that it has.
func (m Member) addressFor(replica Status) string {
	if last := replica.Last; m.Address == "" && last != nil && last.Record.Primary == m.Name {
		return last.SourceAddress
	}
	return m.Address
}

// toldSilent reports whether the primary's assignment names the member as silent. Until a newer assignment does not, the member must stay
// silent.
func toldSilent(primary Member, name string) bool {
	return primary.Status != nil && primary.Status.Assignment != nil && slices.Contains(primary.Status.Assignment.Silent, name)
}

// acks is how many acknowledgements the primary must wait for: the number that the Record promises, or more if enough replicas can give
// them. The Record follows once the higher number is in force.
//
// If commits must wait for replicas in all cases (Durability.Least), the primary requires acknowledgements from its first commit on. It
// also does so while the record can promise nothing because the last replica's data is being replaced.
func acks(c Cluster) int {
	possible, connected := 0, 0
	if status := c.primaryStatus(); status != nil {
		connected = status.AckClients
	}
	for _, member := range c.replicas() {
		if c.wanted(member) && c.Record.Acknowledges(member.Name) && acknowledges(member) {
			possible++
		}
	}
	full := FullAcks(c.Replicas)
	return max(c.Record.RequiredAcks, min(full, c.Durability.Least), min(full, possible, connected))
}

func acknowledges(member Member) bool {
	return member.Status != nil && member.Status.Acknowledging && member.Status.State == StateReplicating
}

// scalingInWaits explains why all members stay wanted for now although the user wants fewer; nil if some may leave. Too few of the replicas
// that stay acknowledge commits, for example because one of them is down: then those that leave have the only copies.
func (c Cluster) scalingInWaits() *Note {
	primary, _ := c.member(c.Record.Primary)
	if c.Record.Primary == "" || c.Replicas >= c.Scale || !c.wanted(primary) {
		return nil
	}
	var others []string
	need := FullAcks(c.Replicas)
	for _, member := range c.replicas() {
		switch {
		case !c.wanted(member):
		case c.Record.Acknowledges(member.Name) && acknowledges(member):
			need--
		default:
			others = append(others, member.Name)
		}
	}
	if need <= 0 {
		return nil
	}
	return &Note{Reason: ReasonScalingIn, Message: fmt.Sprintf("scaling in waits until %d more of the replicas that stay acknowledge commits: %s", need, strings.Join(others, ", "))}
}

// scale returns how many members there must be. Only replicas with the highest ordinals are removed, and only once no commit waits for more
// acknowledgements than the remaining replicas can give.
func scale(c Cluster) (int, *Note) {
	primary, _ := c.member(c.Record.Primary)
	if !c.wanted(primary) {
		return max(c.Scale, primary.Ordinal+1), &Note{Reason: ReasonPrimaryWouldLeave, Message: "scaling in would remove " + primary.Name + ", which is the primary; raise spec.replicas again", Blocked: true}
	}
	if c.Replicas >= c.Scale {
		return c.Replicas, nil
	}
	if primary.Status == nil || primary.Status.State != StateWriting {
		return c.Scale, &Note{Reason: ReasonScalingIn, Message: "scaling in waits for the primary " + primary.Name}
	}
	if primary.Status.AcksEnforced > FullAcks(c.Replicas) {
		return c.Scale, &Note{Reason: ReasonScalingIn, Message: "scaling in waits for the primary " + primary.Name + " to ask for fewer acknowledgements"}
	}
	return c.Replicas, nil
}
