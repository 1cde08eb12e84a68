package agent

import (
	"context"
	"time"
)

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
