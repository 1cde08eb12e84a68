package agent

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// firstCopyPause is how long a member waits after a copy that failed, longestCopyPause the most: each try reads the whole primary again.
	firstCopyPause   = time.Second
	longestCopyPause = 30 * time.Minute
	// endPause is how long it waits at least after one that went through, for mysqld to end and to start with the copy.
	endPause = time.Minute
)

// copies spaces out tries to copy the primary's data. The zero value has seen none.
type copies struct {
	// source is the primary that they were made of: another one may have what that one lacked.
	source  string
	backoff wait.Backoff
	failed  error
	next    time.Time
	// isThrough says that the last one went through, and that mysqld has not been seen to end since.
	isThrough bool
}

// wait returns an error as long as it is too early for another try of this source. One that begins is not through.
func (c *copies) wait(now time.Time, source string) error {
	if c.source != source {
		*c = copies{source: source}
	}
	if c.failed == nil || !now.Before(c.next) {
		c.isThrough = false
		return nil
	}
	return &tooEarlyError{c.failed}
}

// ended notes how a try ended, and returns its error. After one that went through mysqld ends, and a member that does not find it complete
// then must not copy on and on.
func (c *copies) ended(now time.Time, err error) error {
	if c.backoff.Duration == 0 {
		c.backoff = wait.Backoff{Duration: firstCopyPause, Factor: 2, Steps: 12, Cap: longestCopyPause}
	}
	pause := c.backoff.Step()
	c.isThrough = err == nil
	if c.isThrough {
		c.failed, c.next = errors.New("the last one went through, and mysqld has not been seen to start with it"), now.Add(max(pause, endPause))
		return nil
	}
	c.failed, c.next = err, now.Add(pause)
	return &tooEarlyError{err}
}

// keepEnd notes on the volume that the copy is complete, once the mysqld that made it has ended: the next one starts with it, or not at
// all. MySQL says so itself, but not with performance_schema OFF. The caller holds the lock.
func (a *Agent) keepEnd() {
	if !a.copies.isThrough {
		return
	}
	a.copies.isThrough = false
	kept := a.kept
	kept.IsCopied = true
	if err := a.keep(kept); err != nil {
		a.log.Info("cannot note that the copy is complete; MySQL tells, or another one is made", "error", err.Error())
	}
}

// tooEarlyError is about a copy that failed and is not due again. It says no time: whoever reads it reads the same until the next try.
type tooEarlyError struct{ cause error }

func (e *tooEarlyError) Error() string { return "waits before the next copy: " + e.cause.Error() }
func (e *tooEarlyError) Unwrap() error { return e.cause }

// watchCopy reports how far a copy has come until its context ends.
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
