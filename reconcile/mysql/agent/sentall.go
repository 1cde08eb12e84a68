package agent

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

// acknowledgeWithin is how long replicas that received everything may take to acknowledge it. A well replica takes milliseconds, or some
// seconds while its disk stalls. The grace period (spec.durability) follows. So a mysqld that hangs is found about as fast as a machine
// that is gone.
const acknowledgeWithin = 5 * time.Second

// askAgainAfter is when the agent makes a commit of its own, in case an acknowledgement was lost. Well replicas are rarely that slow, and
// three seconds are left for the acknowledgement of that commit before acknowledgeWithin.
const askAgainAfter = 2 * time.Second

// sentAll is since when every look has found that mysqld has sent everything to a session of a replica, by the session's ID. The zero value
// has seen none.
type sentAll map[int64]time.Time

// lasts returns for how long commits have waited for acknowledgements of replicas that all received everything; 0 while a replica still
// receives, because it may acknowledge later. There are no sessions while no commit waits.
func (s *sentAll) lasts(now time.Time, sessions []mysqld.ReceiverSession) time.Duration {
	seen, latest, isSending := sentAll{}, time.Time{}, len(sessions) == 0
	for _, session := range sessions {
		since, found := (*s)[session.ID]
		if !found {
			since = now
		}
		if session.SentAll {
			seen[session.ID] = since
		}
		if since.After(latest) {
			latest = since
		}
		isSending = isSending || !session.SentAll
	}
	*s = seen
	if isSending {
		return 0
	}
	return now.Sub(latest)
}

// longest returns for how long some replica has received everything: its acknowledgement may be lost. Another replica, which catches up,
// may receive for hours.
func (s *sentAll) longest(now time.Time) time.Duration {
	var longest time.Duration
	for _, since := range *s {
		longest = max(longest, now.Sub(since))
	}
	return longest
}

// ackClients returns how many connected replicas acknowledge commits. mysqld counts a replica that hangs as long as its machine
// acknowledges packets. It does not say which replica that is. But while acknowledgements are overdue, fewer replicas acknowledge than
// commits wait for.
//
// The agent does not end the sessions of such replicas: acknowledgements would be lost. Before it counts fewer, it asks again for them.
func (a *Agent) ackClients(ctx context.Context, observed mysqld.Observed) int {
	now := time.Now()
	var sessions []mysqld.ReceiverSession
	if a.stand.lasts(now, observed) > 0 && observed.EnoughAcknowledge() {
		bounded, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		var err error
		if sessions, err = a.local.ReceiverSessions(bounded); err != nil {
			a.log.Info("cannot look at the sessions of replicas, will try again", "error", err.Error())
		}
	}
	lasts := a.sentAll.lasts(now, sessions)
	if a.sentAll.longest(now) >= askAgainAfter {
		a.askAgain(ctx, observed)
	}
	if lasts >= acknowledgeWithin {
		return max(0, observed.AskedAcks-1)
	}
	return observed.AckClients
}

// askAgain makes a commit that replicas acknowledge, in the background. A replica may have stored a commit, and lost its connection before
// it acknowledged it. Without askAgain, the commit waits until another client commits. While no client can log in, the agent cannot either.
func (a *Agent) askAgain(ctx context.Context, observed mysqld.Observed) {
	if observed.Server.SuperReadOnly || observed.LoginsHang {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	failed := func(err error) {
		a.log.Info("cannot ask replicas again for acknowledgements, will try again", "error", err.Error())
	}
	if asks, err := a.local.AskAgain(bounded, failed); err != nil {
		failed(err)
	} else if asks {
		a.log.Info("commits wait although replicas received them: a commit that changes no data asks them again for acknowledgements")
	}
}
