package replication

import (
	"fmt"
	"strings"
)

// Agents of another release. Agents run in the members' Pods, from the operator's own image. When the operator is replaced, the Pods follow
// one by one. So operators and agents of two releases meet in every upgrade, and for longer if the Pods are not replaced. Both report their
// Protocol.
//
// The operator sends a member whose agent speaks another protocol the same as all others: roles stay as they are, a primary that restarted
// is confirmed, replicas follow. Otherwise no member would become ready, and Kubernetes would not replace the next one. But what such an
// agent reports may mean something else. Based on such a report, the operator neither makes a stronger promise nor uses up an existing one:
//
//   - it does not take the member into Joining (admit) or InSync (join),
//   - it does not raise a promise that the member must keep as the primary (raise): such an agent may not refuse a late assignment,
//   - it does not let a member leave InSync if such an agent, or such a primary, reports it as silent (leave).
//
// The operator may always promise less, because it writes that to the record first. An agent decides with Accept what it takes from its
// operator.
//
// JSON lets each side ignore fields that it does not know. But an agent keeps and repeats assignments, and loses the fields that it does
// not know. So a field that is added to Assignment without a new Protocol must not be one of its terms, and Followed must work without it
// (order.go).

// speaksOurProtocol reports whether the operator can rely on what the member's agent reports.
func (s *Status) speaksOurProtocol() bool { return s != nil && s.Protocol == Protocol }

// keepsWhatIsForgotten reports whether the member's agent keeps what a forced primary lacks. Those of protocol 8 would drop it.
func (s *Status) keepsWhatIsForgotten(under Record) bool {
	const since = 9
	return under.ForcedEpoch == 0 || s.Protocol >= since
}

// otherProtocolNote returns a note about the members whose agents speak another protocol; nil if there are none.
func otherProtocolNote(c Cluster) *Note {
	var older, newer []string
	for _, member := range c.Members {
		switch {
		case member.Status == nil:
		case member.Status.Protocol < Protocol:
			older = append(older, member.Name)
		case member.Status.Protocol > Protocol:
			newer = append(newer, member.Name)
		}
	}
	if len(older)+len(newer) == 0 {
		return nil
	}
	var parts []string
	if len(older) > 0 {
		parts = append(parts, "an older release than the operator: "+strings.Join(older, ", "))
	}
	if len(newer) > 0 {
		parts = append(parts, "a newer release than the operator: "+strings.Join(newer, ", "))
	}
	return &Note{Reason: ReasonAgentRelease, Message: fmt.Sprintf("members whose agents are of %s; they keep their roles, but no member joins or leaves the in-sync set on their reports until their agents are replaced. Kubernetes replaces their Pods one by one. If it does not, --agent-image names another release than the operator's, or a Pod that is not ready blocks the replacement: then delete the named Pods, one at a time", strings.Join(parts, "; and of "))}
}
