package cluster

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

// worstProblem returns the worst problem of the cluster; nil for none. It reports the first one that it finds.
func (r passResult) worstProblem(writing, complete bool) *report.Problem {
	note, rolling := r.note(), r.rolling()
	if found := cmp.Or(r.urgent(note), r.problem, r.diskFull(writing), r.staysDown(note, writing), r.commitsHang()); found != nil {
		return found
	}
	if writing && complete && rolling == nil && r.isOver(note) {
		return r.leftToDo(note)
	}
	for _, look := range []func() *report.Problem{
		r.worstPod,    // what Kubernetes reports about the Pods
		r.worstMember, // a member that does not recover by itself
		func() *report.Problem { return r.heldSettings(writing) },
		r.note, // what the decision waits for
	} {
		if found := look(); found != nil {
			return found
		}
	}
	if writing && complete {
		return rolling
	}
	return r.progress(writing)
}

// urgent returns a note that comes before all other problems; nil if it does not. While a primary is replaced, what members lack means
// nothing.
func (r passResult) urgent(note *report.Problem) *report.Problem {
	if note != nil && (note.Stalled || note.Reason == string(replication.ReasonReplacingPrimary) || cmp.Or(r.decision.Note.Request, r.decision.Note.Force, r.decision.Note.Refusal) != "") {
		return note
	}
	return nil
}

// staysDown returns why no replica takes over from a primary that runs and has failed; nil if it has not.
func (r passResult) staysDown(note *report.Problem, writing bool) *report.Problem {
	if writing && note != nil && note.Reason == string(replication.ReasonPrimaryDown) {
		return note
	}
	return nil
}

// heldSettings returns why the members do not get what the spec asks for until a user helps. If no client can write, that is reported
// first.
func (r passResult) heldSettings(writing bool) *report.Problem {
	held := r.children.held
	isDown := !writing && len(r.decision.Record.InSync) > 0
	if held == nil || !held.Stalled || isDown {
		return nil
	}
	return held
}

// note returns what the decision about replication waits for.
func (r passResult) note() *report.Problem {
	if r.decision.Note == nil {
		return nil
	}
	note, n, commands := r.decision.Note, children.NamesOf(r.cluster), ""
	message := note.Message
	if note.Request != "" {
		message += r.lostPod()
		commands = ". If its node is down for certain, run: " + annotateCommand(n, AnnotationReplacePrimary, note.Request)
	}
	if note.Force != "" {
		commands += ". If the data of the other members is lost for good, run: " + annotateCommand(n, AnnotationForcePrimary, note.Force)
	}
	if note.Refusal != "" {
		message += "; " + note.Refusal
	}
	message = report.Brief(message, report.LongestMessage-len(commands)-len("…")) + commands
	return &report.Problem{Reason: string(r.decision.Note.Reason), Message: message, Stalled: r.decision.Note.Blocked}
}

// lostPod returns what Kubernetes reports about the Pod of a primary whose agent does not answer; empty for nothing.
func (r passResult) lostPod() string {
	record := r.decision.Record
	pod, found := r.seen.pod(cmp.Or(record.Primary, record.FormerPrimary))
	if !found {
		return "; its Pod does not exist"
	}
	if problem := diagnosePod(r.cluster, pod); problem != nil {
		return "; " + problem.Message
	}
	return ""
}

// AnnotationReplacePrimary, on a MySQLCluster, asks for another primary although the agent of the present one does not answer. Its value is
// the primary's name, and the epoch and revision of the record, so that it asks only for this time.
const AnnotationReplacePrimary = children.Prefix + "replace-primary"

// AnnotationForcePrimary, on a MySQLCluster, asks for a member as the primary although it may lack acknowledged commits. Its value is the
// member's name, and the epoch and revision of the record.
const AnnotationForcePrimary = children.Prefix + "force-primary"

// annotateCommand returns the command that asks for something.
func annotateCommand(n children.Names, annotation, value string) string {
	return fmt.Sprintf("kubectl -n %s annotate mysqlcluster %s %s=%s --overwrite", n.Namespace, n.Cluster, annotation, value)
}

// rolling returns a problem while Kubernetes replaces Pods for new settings, or while members are added or removed. An update that is held
// back does not count.
func (r passResult) rolling() *report.Problem {
	set := r.seen.set
	if set == nil {
		return &report.Problem{Reason: reasonCreatingMembers, Message: "the operator is creating the members"}
	}
	now := r.roll()
	rolledOut := now.known && (now.update == now.current && len(now.late) == 0 || now.isHeld())
	if !rolledOut || len(r.seen.pods) != children.WantedReplicas(r.cluster) {
		return &report.Problem{Reason: reasonMembersNotReady, Message: cmp.Or(now.asks(), "members are being replaced or removed, one at a time")}
	}
	return nil
}

func (r passResult) rootPassword() *report.Problem {
	if status := r.primaryStatus(); status != nil && status.RootError != "" {
		return &report.Problem{Reason: reasonRootPassword, Message: fmt.Sprintf("spec.secret: root's password in Secret %q is not in force: %s", r.cluster.Spec.Secret, status.RootError), Stalled: true}
	}
	return nil
}

// worstPod returns what Kubernetes reports about the Pods. A Pod that an update is held back from may show a fault that the spec has fixed
// since.
func (r passResult) worstPod() *report.Problem {
	found := diagnose(r.cluster, r.seen)
	if found == nil {
		return nil
	}
	now := r.roll()
	for _, ordinal := range now.held() {
		pod, _ := r.seen.pod(now.n.Member(ordinal))
		if of := diagnosePod(r.cluster, pod); of != nil && *of == *found {
			return &report.Problem{Reason: found.Reason, Message: fmt.Sprintf("%s; that Pod does not have the update yet: %s", found.Message, cmp.Or(now.message(), now.blocked())), Stalled: true}
		}
	}
	return found
}

// worstMember finds a member that does not recover by itself.
func (r passResult) worstMember() *report.Problem {
	for _, member := range r.seen.members {
		if member.Status == nil {
			continue
		}
		switch member.Status.State {
		case replication.StateErrant:
			return &report.Problem{Reason: reasonErrantMember, Message: member.Name + " " + member.Status.Message, Stalled: true}
		case replication.StateBroken:
			return &report.Problem{Reason: reasonReplicaBroken, Message: member.Name + ": " + member.Status.Message, Stalled: true}
		case replication.StateStarting, replication.StateWaiting, replication.StateCloning, replication.StateCatchingUp,
			replication.StateReplicating, replication.StatePromoting, replication.StateWriting:
		}
	}
	return nil
}

// progress explains what a cluster that makes progress waits for.
func (r passResult) progress(writing bool) *report.Problem {
	var waits []string
	for _, member := range r.seen.members {
		if member.Ordinal < children.WantedReplicas(r.cluster) && !r.serves(member) {
			waits = append(waits, member.Name+" ("+describe(member, r.decision.Record).State+")")
		}
	}
	members := strings.Join(waits, ", ")
	switch {
	case !writing && len(r.decision.Record.InSync) == 0:
		return &report.Problem{Reason: reasonCreatingMembers, Message: "the cluster is starting; waiting for " + members}
	case !writing:
		return &report.Problem{Reason: reasonPrimaryUnavailable, Message: fmt.Sprintf("the primary %s does not take writes at the moment; waiting for %s", r.decision.Record.Primary, members)}
	}
	return &report.Problem{Reason: reasonMembersNotReady, Message: "the primary takes writes; waiting for " + members}
}
