package agent

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// receivers are the members that a mysqld allows to follow it. The zero value means that this is not known.
type receivers struct {
	// start is the start of mysqld. If known, it allows exactly these members.
	start   string
	known   bool
	allowed []string
	// since is when it has begun to allow no others, by supervisor.Clock. What others acknowledged before is no evidence of the lease.
	// isUnsure means that a change has failed, so it may allow others.
	since    time.Duration
	isUnsure bool
	// failure is why the last try failed, empty if it did not. The agent logs the same failure once.
	failure string
}

func (r receivers) are(start string, allowed []string) bool {
	return r.known && r.start == start && slices.Equal(r.allowed, allowed)
}

// within reports whether no others were allowed before.
func (r receivers) within(next receivers) bool {
	isAllowed := func(name string) bool { return slices.Contains(next.allowed, name) }
	return r.start == next.start && r.since > 0 && !r.isUnsure && !slices.ContainsFunc(r.allowed, func(name string) bool { return !isAllowed(name) })
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
// mysqld starts with all of them locked out, unless it may open by them (prepareReopening).
func (a *Agent) allowReceivers(ctx context.Context, local replication.Observed) (changed bool) {
	if local.Assignment == nil || local.Assignment.Role != replication.RolePrimary || local.Server.SuperReadOnly {
		a.receivers.known = a.receivers.known && a.isReopening(local.Assignment)
		return false
	}
	allowed := local.Assignment.Receivers()
	if a.receivers.are(a.start, allowed) {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	a.receivers.known = false
	if err := a.local.AllowReceivers(bounded, ordinalsOf(allowed)); err != nil {
		a.notAllowed(err)
		return false
	}
	a.hasAllowed(allowed)
	return true
}

func (a *Agent) hasAllowed(allowed []string) {
	a.log.Info("members may follow this primary", "allowed", allowed)
	next := receivers{start: a.start, known: true, allowed: allowed, since: a.receivers.since}
	if now, err := supervisor.Clock(); err != nil {
		next.since = math.MaxInt64 // no replica counts as heard
	} else if !a.receivers.within(next) {
		next.since = now
	}
	a.receivers = next
}

func (a *Agent) notAllowed(err error) {
	if a.receivers.failure != err.Error() {
		a.log.Info("cannot change which members may follow this primary, will try again", "error", err.Error())
	}
	a.receivers.failure, a.receivers.isUnsure = err.Error(), true
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
