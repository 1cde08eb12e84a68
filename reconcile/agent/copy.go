package agent

import (
	"context"
	"time"
)

// watchCopy reports how far a copy has come until its context ends.
func (a *Agent) watchCopy(ctx context.Context) {
	a.setProgress(true, nil)
	defer a.setProgress(false, nil)
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
			a.setProgress(true, percent)
		}
	}
}

func (a *Agent) setProgress(copying bool, percent *int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.copying, a.status.CloneProgress = copying, percent
	a.looked, a.answered = now, now
}
