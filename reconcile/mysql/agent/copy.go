package agent

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// firstCopyPause is how long a member waits after a failed copy, longestCopyPause the longest wait: each attempt reads the whole
	// primary again.
	firstCopyPause   = time.Second
	longestCopyPause = 30 * time.Minute
	// endPause is the shortest wait after a successful copy, in which mysqld ends and starts with the copy.
	endPause = time.Minute
)

// copyBackoff limits how often the agent attempts to copy the primary's data. The zero value has seen no attempt.
type copyBackoff struct {
	// source is the primary of these attempts. A copy of another primary may succeed, so the wait does not apply to it.
	source  string
	backoff wait.Backoff
	failed  error
	next    time.Time
	// isThrough reports whether the last copy succeeded and mysqld has not been seen to end since.
	isThrough bool
}

// wait returns an error while it is too early for another attempt from this source. An attempt that begins resets isThrough.
func (c *copyBackoff) wait(now time.Time, source string) error {
	if c.source != source {
		*c = copyBackoff{source: source}
	}
	if c.failed == nil || !now.Before(c.next) {
		c.isThrough = false
		return nil
	}
	return &copyWaitError{c.failed}
}

// ended records how an attempt ended, and returns its error. After a successful copy mysqld ends. A member that does not find that copy
// complete must not copy again and again.
func (c *copyBackoff) ended(now time.Time, err error) error {
	if c.backoff.Duration == 0 {
		c.backoff = wait.Backoff{Duration: firstCopyPause, Factor: 2, Steps: 12, Cap: longestCopyPause}
	}
	pause := c.backoff.Step()
	c.isThrough = err == nil
	if c.isThrough {
		c.failed, c.next = errors.New("the last copy succeeded, but mysqld has not started with it"), now.Add(max(pause, endPause))
		return nil
	}
	c.failed, c.next = err, now.Add(pause)
	return &copyWaitError{err}
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
