package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// firstCopyPause is how long a member waits after a copy that failed, longestCopyPause the most: each try reads the whole primary again.
	firstCopyPause   = time.Second
	longestCopyPause = 30 * time.Minute
)

// copies spaces out tries to copy the primary's data. The zero value has seen none.
type copies struct {
	// source is the primary that they were made of: another one may have what that one lacked.
	source  string
	backoff wait.Backoff
	failed  error
	next    time.Time
}

// wait returns an error as long as it is too early for another try of this source.
func (c *copies) wait(now time.Time, source string) error {
	if c.source != source {
		*c = copies{source: source}
	}
	if c.failed == nil || !now.Before(c.next) {
		return nil
	}
	return &tooEarlyError{c.failed}
}

// ended notes how a try ended, and returns its error.
func (c *copies) ended(now time.Time, err error) error {
	if c.failed = err; err == nil {
		c.backoff = wait.Backoff{}
		return nil
	}
	if c.backoff.Duration == 0 {
		c.backoff = wait.Backoff{Duration: firstCopyPause, Factor: 2, Steps: 12, Cap: longestCopyPause}
	}
	c.next = now.Add(c.backoff.Step())
	return &tooEarlyError{err}
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
