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
	// judgeTimeout bounds one look into the binary log, matchTimeout the commits of one request: the loop waits for both.
	judgeTimeout = time.Second
	matchTimeout = 2 * time.Second
	// firstLogPause is how long the binary log is left alone after a look that had no answer, longestLogPause the most.
	firstLogPause   = 2 * time.Second
	longestLogPause = time.Minute
	// markEvery is how often a replica notes where its binary log ends while there is nothing to judge.
	markEvery = time.Minute
)

// judge looks into the binary log for what the next step depends on, and returns what is known to be hollow. On a full volume mysqld does
// not answer, since a write holds the log.
func (a *Agent) judge(ctx context.Context, local replication.Local) replication.GTIDSet {
	executed := local.Server.Executed
	known := a.logbook.Hollow(executed)
	if a.Status().Disk.Level == replication.DiskFull || time.Now().Before(a.patience.next) {
		return known
	}
	wanted := replication.ToJudge(local)
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

// patience spaces out looks into a binary log that gives no answer: each leaves a session behind that waits as long as mysqld hangs. The
// zero value has seen none.
type patience struct {
	backoff wait.Backoff
	next    time.Time
}

// looked notes a look. isSilent says that it ended without any answer.
func (p *patience) looked(now time.Time, isSilent bool) {
	if !isSilent {
		*p = patience{}
		return
	}
	if p.backoff.Duration == 0 {
		p.backoff = wait.Backoff{Duration: firstLogPause, Factor: 2, Steps: 12, Cap: longestLogPause}
	}
	p.next = now.Add(p.backoff.Step())
}

// complain logs why the binary log cannot be read, once; that the time was too short is none.
func (a *Agent) complain(err error) {
	problem := ""
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		problem = err.Error()
	}
	if problem != "" && problem != a.unread {
		a.log.Info("cannot look into the binary log, will try again", "error", problem)
	}
	a.unread = problem
}

// mark keeps what has to be read short.
func (a *Agent) mark(ctx context.Context, local replication.Local) {
	if time.Since(a.marked) < markEvery || !replication.HasNothingOwn(local) {
		return
	}
	a.marked = time.Now()
	a.complain(a.logbook.Mark(ctx, a.local))
}

// Match takes a request to match hollow transactions, which the loop carries out at its next look. One that was not carried out yet is
// replaced: the operator asks again for what it still misses.
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

// match commits empty transactions with the GTIDs that were asked for, if that is right by the look that was just made as well.
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
	isUnderWay := !missing.Both(observed.Server.Pending).Empty() // of a former request, whose commit waits
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
		a.log.Info("hollow transactions of replicas are not matched, waits to be asked again", "error", err.Error())
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
		writeJSON(w, http.StatusConflict, refused{Epoch: held.Epoch, Revision: held.Revision})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
