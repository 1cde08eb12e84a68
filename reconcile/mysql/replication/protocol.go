package replication

import (
	"fmt"
	"strings"
)

// Agents of another release. Agents run in the members' Pods, from the operator's own image; when the operator is replaced the Pods
// follow one by one, so operators and agents of two releases meet in every upgrade, and for longer where the Pods are not replaced.
// Both tell their Protocol.
//
// To a member whose agent speaks another one, the operator says what it says to all: the roles stay as they are, a primary that
// restarted is confirmed, replicas follow. Else no member would become ready, and Kubernetes would not go on to replace the next. What
// the operator does not do is to strengthen or to spend a promise on what such an agent says, since that may mean something else:
//
//   - it does not take the member into InSync (join),
//   - it raises no promise that the member would have to keep as the primary (raise): such an agent may not refuse a late assignment,
//   - it lets no member leave InSync that says by such an agent, or by such a primary, that it is silent (leave).
//
// To promise less is always allowed: the record says so first. An agent judges its operator by Accept.
//
// JSON lets each side ignore what it does not know. But an agent keeps and repeats assignments, and loses the fields that it does not know.
// A field that Assignment gets without a new Protocol must be none of its terms, and Followed has to do without it where it is missing
// (order.go).

// understood says whether what the member's agent says can be relied upon.
func (s *Status) understood() bool { return s != nil && s.Protocol == Protocol }

// strangers says which members have agents of another protocol; nil where none has.
func strangers(c Cluster) *Note {
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
	return &Note{ReasonAgentRelease, fmt.Sprintf("members whose agents are of %s; they go on in their roles, and until they understand the operator no member joins or leaves the in-sync set on what they say. Kubernetes replaces their Pods one by one; if it does not come to that, --agent-image names another release than the operator's, or a Pod that is not ready holds it up: delete the named Pods then, one at a time", strings.Join(parts, "; and of ")), false}
}
