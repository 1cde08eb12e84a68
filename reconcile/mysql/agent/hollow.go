package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	hollowPath = "/v1/hollow"
	// judgeTimeout bounds one read of the binary log, matchTimeout the commits of one request: the loop waits for both.
	judgeTimeout = time.Second
	matchTimeout = 2 * time.Second
	// firstLogPause is how long the agent does not read the binary log after a read without an answer, longestLogPause the longest pause.
	firstLogPause   = 2 * time.Second
	longestLogPause = time.Minute
	// markEvery is how often a replica records where its binary log ends while there is nothing to judge.
	markEvery = time.Minute
)

// judge reads the binary log for the transactions that the next step depends on, and returns those known to be hollow. On a full volume
// mysqld would not answer, because a write holds the log.
func (a *Agent) judge(ctx context.Context, local replication.Observed) replication.GTIDSet {
	executed := local.Server.Executed
	known := a.logbook.Hollow(executed)
	if a.Status().Disk.Level == replication.DiskFull || time.Now().Before(a.patience.next) {
		return known
	}
	wanted := replication.ToInspect(local)
	bounded, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	answers := a.logbook.Answers()
	if wanted.Empty() {
		a.mark(bounded, local)
	} else {
		a.complain(a.logbook.Judge(bounded, a.local, wanted, executed))
	}
	isSilent := bounded.Err() != nil && a.logbook.Answers() == answers
	a.patience.looked(time.Now(), isSilent)
	return a.logbook.Hollow(executed)
}

// logReadBackoff limits how often the agent reads a binary log that gives no answer: each read leaves a session that waits as long as
// mysqld hangs. The zero value has seen no read.
type logReadBackoff struct {
	backoff wait.Backoff
	next    time.Time
}

// looked records a read. isSilent reports whether it ended without any answer.
func (p *logReadBackoff) looked(now time.Time, isSilent bool) {
	if !isSilent {
		*p = logReadBackoff{}
		return
	}
	if p.backoff.Duration == 0 {
		p.backoff = wait.Backoff{Duration: firstLogPause, Factor: 2, Steps: 12, Cap: longestLogPause}
	}
	p.next = now.Add(p.backoff.Step())
}

// complain logs once why the binary log cannot be read. A timeout does not count.
func (a *Agent) complain(err error) {
	problem := ""
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		problem = err.Error()
	}
	if problem != "" && problem != a.unread {
		a.log.Info("cannot read the binary log, will try again", "error", problem)
	}
	a.unread = problem
}

// mark keeps the part of the log short that must be read later.
func (a *Agent) mark(ctx context.Context, local replication.Observed) {
	if time.Since(a.marked) < markEvery || !replication.HasNothingOwn(local) {
		return
	}
	a.marked = time.Now()
	a.complain(a.logbook.Mark(ctx, a.local))
}

// Match accepts a request to match hollow transactions. The loop carries it out at its next turn. A new request replaces one that was not
// carried out: the operator asks again for transactions that are still missing.
func (a *Agent) Match(asked replication.Matching) error {
	if err := replication.AcceptMatching(a.Status(), asked); err != nil {
		return err
	}
	a.mu.Lock()
	a.matching = &asked
	a.mu.Unlock()
	a.Wake()
	return nil
}

// match commits empty transactions with the requested GTIDs, if the request is still valid by the latest look.
func (a *Agent) match(ctx context.Context, observed mysqld.Observed) {
	a.mu.Lock()
	asked := a.matching
	a.matching = nil
	a.mu.Unlock()
	if asked == nil {
		return
	}
	err := replication.AcceptMatching(a.Status(), *asked)
	missing := asked.GTIDs.Subtract(observed.Server.Executed)
	isUnderWay := !missing.Both(observed.Server.Pending).Empty() // by a former request, whose commit waits
	if err == nil && !isUnderWay && !missing.Empty() {
		bounded, cancel := context.WithTimeout(ctx, matchTimeout)
		defer cancel()
		var count int
		count, err = a.local.CommitEmpty(bounded, missing.All())
		if count > 0 {
			a.log.Info("matched hollow transactions of replicas", "count", count)
		}
	}
	if err != nil {
		a.log.Info("cannot match hollow transactions of replicas, waiting for the operator's next request", "error", err.Error())
	}
}

func (a *Agent) putHollow(w http.ResponseWriter, r *http.Request) {
	var asked replication.Matching
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked); err != nil {
		http.Error(w, "read which hollow transactions to match: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := a.Match(asked); err != nil {
		held := a.Status().Held
		writeJSON(w, http.StatusConflict, refusalBody{Epoch: held.Epoch, Revision: held.Revision})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
