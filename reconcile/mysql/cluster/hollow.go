package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// eventHollow is the event about transactions that change no row.
	eventHollow = "HollowTransactionsMatched"
	// hollowEvery is how often the operator reports them for a cluster at most: a monitoring account may flush every minute.
	hollowEvery = time.Hour
)

// matchHollow asks the primary to match hollow transactions of replicas. Nothing depends on it: if the primary refuses, or cannot be
// reached, the operator asks it again at the next look.
func (r *reconciler) matchHollow(ctx context.Context, agents *agent.Client, next action, result *passResult) {
	if err := agents.Match(ctx, next.to, next.matching); err != nil {
		logr.FromContextOrDiscard(ctx).Info("failed to match hollow transactions, will retry", "instance", next.name, "reason", err.Error())
		return
	}
	result.matched = true
	if r.memory.tellsHollow(keyOf(result.cluster), result.cluster.UID, result.seen.now) {
		result.hollow = append(result.hollow, hollowEvent(result.seen.members, next.matching))
	}
}

// hollowEvent names the members whose transactions the primary was asked to match.
func hollowEvent(members []replication.Member, asked replication.Matching) reconcile.Event {
	var names []string
	for _, member := range members {
		if member.Status != nil && !member.Status.Hollow.Both(asked.GTIDs).Empty() {
			names = append(names, member.Name)
		}
	}
	return reconcile.Event{Type: reconcile.Normal, Reason: eventHollow, Action: "MatchTransactions", Note: fmt.Sprintf(
		"%s wrote transactions that change no row (%d of them), by FLUSH, ANALYZE or REPAIR, or by the first use of a MEMORY table after a start; the primary %s commits empty transactions with the same GTIDs. To avoid this, use accounts without RELOAD for monitoring, and FLUSH LOCAL or NO_WRITE_TO_BINLOG on replicas. The operator reports this once an hour at most",
		strings.Join(names, " and "), asked.GTIDs.Count(), asked.Primary)}
}
