package cluster

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// verb is what an action does.
type verb string

const (
	verbHold    verb = "hold"                  // sets only the StatefulSet's partition, which holds an update back from the primary
	verbCheck   verb = "check"                 // reads a new member's claim live: the StatefulSet controller would use another owner's
	verbApply   verb = "apply"                 // applies what the members consist of, or what leads clients to them
	verbPublish verb = "publish"               // applies the ConfigMap with the CAs, which clients read and no Pod needs
	verbRecord  verb = "record"                // changes the record of truth, with the status
	verbExpand  verb = "expand"                // raises a claim
	verbAssign  verb = "assign"                // sends a member its assignment
	verbMatch   verb = "match transactions on" // asks the primary to match hollow transactions of replicas
	verbLabel   verb = "label"                 // sets a member's role as a label of its Pod
)

// action is one thing that a pass does, and why. kind and name are those of the object that it changes.
type action struct {
	verb               verb
	kind, name, reason string

	child      namedChild                   // to apply or publish; nil for the StatefulSet, which applySet builds
	members    int                          // of the StatefulSet
	volume     corev1.PersistentVolumeClaim // to expand to size
	size       resource.Quantity
	to         agent.Target // gets assignment or matching
	assignment replication.Assignment
	relaxes    bool // the assignment allows the member more: the live record must agree first
	releases   bool // the assignment makes the member ready, and an update of the StatefulSet continues: the children come first
	afterHold  bool // the StatefulSet must hold that update back from the primary first
	matching   replication.Matching
	role       string // is the value of the label
}

// namedChild is the apply configuration of a child.
type namedChild interface {
	GetKind() *string
	GetName() *string
}

func (a action) String() string { return fmt.Sprintf("%s %s/%s: %s", a.verb, a.kind, a.name, a.reason) }

// MarshalText makes logs print actions as texts.
func (a action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// planInput is everything that a plan follows from.
type planInput struct {
	cluster  v1.MySQLCluster
	seen     observed
	decision replication.Decision
	operator Operator
	// areMade reports whether the children are known to be as they should be: then nothing is built or compared. hasPolicy reports whether
	// the cluster has a NetworkPolicy.
	areMade, hasPolicy bool
}

// planOf returns what a pass does, in order. If the record changes, nothing is done that depends on it: it must be written first, and the
// next pass continues. While a primary is replaced, clients wait: the record and the assignments come before the children.
func planOf(in planInput) []action {
	recorded, decided := recordOf(in.cluster.Status), in.decision.Record
	if !decided.Equal(recorded) {
		record := action{verb: verbRecord, kind: "MySQLCluster", name: in.cluster.Name, reason: recordReason(recorded, decided)}
		if decided.FormerPrimary != recorded.FormerPrimary {
			return []action{record}
		}
		readers, _ := planLabels(in)
		return append(slices.Concat(readers, planChildren(in)), record)
	}
	first, later := planAssignments(in)
	readers, labels := planLabels(in)
	return slices.Concat(first, readers, planChildren(in), planExpansions(in), later, planMatching(in), labels)
}

func recordReason(before, after replication.Record) string {
	if after.FormerPrimary != "" {
		return fmt.Sprintf("another member takes over from %s in epoch %d", after.FormerPrimary, after.Epoch)
	}
	if after.ForcedEpoch > before.ForcedEpoch {
		return fmt.Sprintf("a user makes %s the primary of epoch %d, although it may lack acknowledged commits", after.Primary, after.Epoch)
	}
	if after.Primary != before.Primary || after.Epoch != before.Epoch {
		return fmt.Sprintf("%s becomes the primary of epoch %d", after.Primary, after.Epoch)
	}
	return fmt.Sprintf("revision %d: in sync %v, %d acknowledgements required; before: %v, %d",
		after.Revision, after.InSync, after.RequiredAcks, before.InSync, before.RequiredAcks)
}

// planChildren returns all children, unless they are known to be as they should be. The order matters for a new cluster: what Pods mount
// comes before the StatefulSet. client.Apply writes only what differs. To hold the primary back waits for no other child; the rest of the
// StatefulSet then follows in the next pass.
func planChildren(in planInput) []action {
	if in.areMade {
		return nil
	}
	const compare = "not known yet to be as the spec asks"
	var plan []action
	apply := func(child namedChild, reason string) {
		plan = append(plan, action{verb: verbApply, kind: *child.GetKind(), name: *child.GetName(), reason: reason, child: child})
	}
	n, cluster, now, scale := children.NamesOf(in.cluster), in.cluster, scaleOf(in.seen), in.decision.Scale
	if isInnoDBOnly(cluster, in.seen) {
		cluster = children.WithTableDefaults(cluster)
	}
	holds := rolloutOf(in.cluster, in.seen).bringsOtherSeries()
	if holds {
		reason := fmt.Sprintf("a replica has another release series, and Kubernetes would restart %s next", in.cluster.Status.Primary)
		plan = append(plan, action{verb: verbHold, kind: "StatefulSet", name: n.Cluster, reason: reason, members: now})
	}
	for ordinal := now; ordinal < scale; ordinal++ {
		plan = append(plan, action{verb: verbCheck, kind: "PersistentVolumeClaim", name: n.Claim(ordinal), reason: "a new member must not get another owner's volume"})
	}
	apply(children.ServiceAccount(n), compare)
	apply(children.ConfigMap(n, cluster), compare)
	apply(children.PodsService(n, cluster), compare)
	apply(children.WriteService(n, cluster, in.seen.route), "writes must reach "+in.seen.route)
	readers := "replicas"
	if in.decision.ReadFromPrimary {
		readers = in.seen.route + ", because no replica serves"
	}
	apply(children.ReadService(n, cluster, in.seen.route, in.decision.ReadFromPrimary), "reads must reach "+readers)
	apply(children.PodDisruptionBudget(n), compare)
	if cluster.Spec.Network != nil || in.hasPolicy {
		apply(children.NetworkPolicy(n, cluster, in.operator), "it must allow what spec.network says")
	}
	if scale > 0 && !holds {
		reason := fmt.Sprintf("%d members, now %d", scale, now)
		plan = append(plan, action{verb: verbApply, kind: "StatefulSet", name: n.Cluster, reason: reason, members: scale})
	}
	trust := children.TrustMap(n, in.seen.bundle)
	return append(plan, action{verb: verbPublish, kind: *trust.GetKind(), name: *trust.GetName(), reason: "clients read the CAs from it", child: trust})
}

// planExpansions raises members' claims to the size in spec.storage. It never lowers a claim; the schema already refuses that.
func planExpansions(in planInput) []action {
	var plan []action
	n, wanted := children.NamesOf(in.cluster), children.WantedStorage(in.cluster)
	for _, volume := range in.seen.volumes {
		asked := volume.Spec.Resources.Requests[corev1.ResourceStorage]
		isMember := slices.ContainsFunc(in.seen.pods, func(pod corev1.Pod) bool {
			ordinal, ok := n.Ordinal(pod.Name)
			return ok && volume.Name == n.Claim(ordinal)
		})
		if volume.Status.Phase != corev1.ClaimBound || asked.Cmp(wanted) >= 0 || !isMember {
			continue
		}
		reason := fmt.Sprintf("from %s to %s, as spec.storage asks", asked.String(), wanted.String())
		plan = append(plan, action{verb: verbExpand, kind: "PersistentVolumeClaim", name: volume.Name, reason: reason, volume: volume, size: wanted})
	}
	return plan
}

// planAssignments sends every member that answers its assignment, if that differs from the one that the member follows. Those that come
// later wait for the children.
func planAssignments(in planInput) (first, later []action) {
	roll := rolloutOf(in.cluster, in.seen)
	for _, member := range in.seen.members {
		wanted, found := in.decision.Assignments[member.Name]
		if !found || member.Status == nil || wanted.Followed(*member.Status) {
			continue
		}
		releases := roll.releases(member, in.seen)
		if releases && member.Status.Version == "" {
			continue // its mysqld has not answered yet
		}
		follows := "nothing"
		if last := member.Status.Assignment; last != nil {
			follows = fmt.Sprintf("another assignment, of revision %d", last.Record.Revision)
		}
		pod, _ := in.seen.pod(member.Name)
		next := action{
			verb: verbAssign, kind: "Pod", name: member.Name,
			reason: fmt.Sprintf("%s of revision %d, because it follows %s", wanted.Role, wanted.Record.Revision, follows),
			to:     agent.Target{Address: pod.Status.PodIP, Host: member.Host}, assignment: wanted.ConfirmedFor(*member.Status), relaxes: wanted.Relaxes(*member.Status),
			releases: releases, afterHold: releases && roll.bringsOtherSeries(),
		}
		if next.releases {
			later = append(later, next)
		} else {
			first = append(first, next)
		}
	}
	return first, later
}

func planMatching(in planInput) []action {
	wanted := in.decision.Matching
	if wanted == nil {
		return nil
	}
	pod, _ := in.seen.pod(wanted.Primary)
	return []action{{
		verb: verbMatch, kind: "Pod", name: wanted.Primary, reason: fmt.Sprintf("replicas wrote %d that change no row", wanted.GTIDs.Count()),
		to: agent.Target{Address: pod.Status.PodIP, Host: children.NamesOf(in.cluster).Host(wanted.Primary)}, matching: *wanted,
	}}
}

// planLabels returns the roles of Pods that change. Those that lead readers to a former primary again come before the Services: the same
// decision may lead the read Service away from the primary.
func planLabels(in planInput) (readers, others []action) {
	if in.decision.Record.Primary == "" {
		return nil, nil // no member has a role yet
	}
	for _, pod := range in.seen.pods {
		has := pod.Labels[children.LabelRole]
		role := in.roleOf(pod.Name, has)
		if has == role || pod.DeletionTimestamp != nil {
			continue
		}
		reason := fmt.Sprintf("from %s to %s", cmp.Or(has, "no role"), role)
		change := action{verb: verbLabel, kind: "Pod", name: pod.Name, reason: reason, role: role}
		if has == children.RoleFormerPrimary && role == children.RoleReplica {
			readers = append(readers, change)
		} else {
			others = append(others, change)
		}
	}
	return readers, others
}

// roleOf returns the role of a member with a Pod. A former primary gets no readers before it has accepted the record, because it may run on
// without a connection to the others, and would serve what was there before. Nor does it get any as long as it refuses clients.
func (in planInput) roleOf(member, has string) string {
	record, status := in.decision.Record, in.seen.heard(member)
	wasPrimary := has == children.RolePrimary || has == children.RoleFormerPrimary
	switch {
	case member == record.Primary:
		return children.RolePrimary
	case status != nil && status.RefusesClients:
		return children.RoleFormerPrimary
	case !wasPrimary, status != nil && status.HeldRole == replication.RoleReplica && status.Held.Epoch == record.Epoch:
		return children.RoleReplica
	}
	return children.RoleFormerPrimary
}
