package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// firstCopyPause is how long a member waits after a failed copy, longestCopyPause the longest wait: each attempt reads all data again.
	firstCopyPause   = time.Second
	longestCopyPause = 30 * time.Minute
	// endPause is the shortest wait after a successful copy, in which mysqld ends and starts with the copy.
	endPause = time.Minute
)

// copyBackoff limits how often the agent attempts to copy another member's data. The zero value has seen no attempt.
type copyBackoff struct {
	// failures are by the name of the member that was copied. A copy of another one may succeed, so the wait does not apply to it.
	failures map[string]copyFailure
	// tried names the replicas that were copied, or could not be, since the member last followed its primary, or tried to copy that one. The
	// operator names another donor then.
	tried []string
	// isThrough reports whether the last copy, of the member called last, succeeded and mysqld has not been seen to end since.
	isThrough bool
	last      string
}

// copyFailure is what stands against another attempt before its time.
type copyFailure struct {
	backoff wait.Backoff
	cause   error
	next    time.Time
}

// wait returns an error while it is too early for another attempt to copy this member. While mysqld ends after a successful copy, it is too
// early to copy any: the operator names another donor as soon as one was tried. An attempt that begins resets isThrough.
func (c *copyBackoff) wait(now time.Time, source string) error {
	if c.isThrough {
		source = c.last
	}
	if last := c.failures[source]; last.cause != nil && now.Before(last.next) {
		return &copyWaitError{last.cause}
	}
	c.isThrough = false
	return nil
}

// ended records how an attempt ended, and returns its error. After a successful copy mysqld ends. A member that does not find that copy
// complete must not copy again and again.
func (c *copyBackoff) ended(now time.Time, source string, err error) error {
	last := c.failures[source]
	if last.backoff.Duration == 0 {
		last.backoff = wait.Backoff{Duration: firstCopyPause, Factor: 2, Steps: 12, Cap: longestCopyPause}
	}
	pause := last.backoff.Step()
	c.isThrough, c.last = err == nil, source
	last.cause, last.next = err, now.Add(pause)
	if c.isThrough {
		last.cause, last.next = errors.New("the last copy succeeded, but mysqld has not started with it"), now.Add(max(pause, endPause))
	}
	if c.failures == nil {
		c.failures = map[string]copyFailure{}
	}
	c.failures[source] = last
	if c.isThrough {
		return nil
	}
	return &copyWaitError{err}
}

// used records that the member has copied a replica, or tried to; nil for the primary, which is the last one to try. Then all replicas may
// be tried again, each after its pause.
func (c *copyBackoff) used(donor *replication.Donor) {
	switch {
	case donor == nil:
		c.tried = nil
	case !slices.Contains(c.tried, donor.Name):
		c.tried = append(slices.Clone(c.tried), donor.Name)
	}
}

// storeCopyEnd records on the volume that the copy is complete, once the mysqld that made it has ended: the next mysqld starts with the
// copy, or does not start. MySQL reports that itself, but not with performance_schema OFF. The caller must hold the lock.
func (a *Agent) storeCopyEnd() {
	if !a.copies.isThrough {
		return
	}
	a.copies.isThrough = false
	kept := a.kept
	kept.IsCopied = true
	if err := a.storeState(kept); err != nil {
		a.log.Info("cannot record that the copy is complete; if MySQL does not report it either, the agent copies again", "error", err.Error())
	}
}

// copyWaitError reports a copy that failed and is not due again. Its text has no time, so that it stays the same until the next attempt.
type copyWaitError struct{ cause error }

func (e *copyWaitError) Error() string { return "waits before the next copy: " + e.cause.Error() }
func (e *copyWaitError) Unwrap() error { return e.cause }

// watchCopy reports the progress of a copy until its context ends.
func (a *Agent) watchCopy(ctx context.Context) {
	a.setProgress(nil)
	defer a.setProgress(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		bounded, cancel := context.WithTimeout(ctx, lookTimeout)
		percent, err := a.local.CloneProgress(bounded)
		cancel()
		if err == nil {
			a.setProgress(percent)
		}
	}
}

func (a *Agent) setProgress(percent *int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.status.CloneProgress = percent
	a.looked, a.answered = now, now
}
