package agent

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// receivers are the members that a mysqld allows to follow it. The zero value means that this is not known.
type receivers struct {
	// start is the start of mysqld, of which the agent has made this certain for these members.
	start   string
	known   bool
	allowed []string
	// failure is why the agent could not, empty if it could. It logs the same failure once.
	failure string
}

func (r receivers) are(start string, allowed []string) bool {
	return r.known && r.start == start && slices.Equal(r.allowed, allowed)
}

// followed is what a member has certainly followed before it observes itself: a record's version, and the members that this primary has
// made silent. The zero value is for a member without an assignment, or a primary that has not locked out all others.
type followed struct {
	version replication.Version
	silent  []string
}

// follows returns what the member follows now.
func (a *Agent) follows() followed {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch order := a.assignment; {
	case order == nil, order.Role == replication.RolePrimary && !a.receivers.are(a.start, order.Receivers()):
		return followed{}
	default:
		return followed{order.Record.Version(), order.Silent}
	}
}

// allowReceivers makes mysqld allow the members that the assignment allows to follow it, and no others. It reports whether it changed that.
// mysqld starts with all of them locked out.
func (a *Agent) allowReceivers(ctx context.Context, local replication.Observed) (changed bool) {
	if local.Assignment == nil || local.Assignment.Role != replication.RolePrimary || local.Server.SuperReadOnly {
		a.receivers.known = false
		return false
	}
	allowed := local.Assignment.Receivers()
	if a.receivers.are(a.start, allowed) {
		return false
	}
	a.receivers.known = false
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := a.local.AllowReceivers(bounded, ordinalsOf(allowed)); err != nil {
		if a.receivers.failure != err.Error() {
			a.log.Info("cannot change which members may follow this primary, will try again", "allowed", allowed, "error", err.Error())
		}
		a.receivers.failure = err.Error()
		return false
	}
	a.log.Info("members may follow this primary", "allowed", allowed)
	a.receivers = receivers{start: a.start, known: true, allowed: allowed}
	return true
}

// ordinalsOf returns the numbers at the end of members' names.
func ordinalsOf(members []string) []int {
	var all []int
	for _, name := range members {
		if ordinal, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:]); err == nil {
			all = append(all, ordinal)
		}
	}
	return all
}
