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

// sentAll is since when every look has found that mysqld has sent everything to a session of a replica, by the session's ID. The zero value
// has seen none.
type sentAll map[int64]time.Time

// isOverdue reports whether commits wait for acknowledgements that do not come: all replicas received everything long ago. A replica that
// still receives a large transaction may acknowledge it later. There are no sessions while no commit waits.
func (s *sentAll) isOverdue(now time.Time, sessions []mysqld.ReceiverSession) bool {
	seen, overdue := sentAll{}, len(sessions) > 0
	for _, session := range sessions {
		since, found := (*s)[session.ID]
		if !found {
			since = now
		}
		if session.SentAll {
			seen[session.ID] = since
		}
		overdue = overdue && session.SentAll && now.Sub(since) >= acknowledgeWithin
	}
	*s = seen
	return overdue
}

// ackClients returns how many connected replicas acknowledge commits. mysqld counts a replica that hangs as long as its machine
// acknowledges packets. It does not say which replica that is. But while acknowledgements are overdue, fewer replicas acknowledge than
// commits wait for.
//
// The agent does not end the sessions of such replicas. A replica may have stored a commit whose acknowledgement is then lost. When it
// connects again, mysqld (9.7.4) does not ask for that acknowledgement, and the commit waits until a later one is acknowledged.
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
	if a.sentAll.isOverdue(now, sessions) {
		return max(0, observed.AskedAcks-1)
	}
	return observed.AckClients
}
