package restore

import (
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

const (
	// stepEvery is how soon the operator continues after it has changed something.
	stepEvery = time.Second
	// progressEvery is how often the operator asks a restoring Pod for its progress, progressLast how often when the Pod is about to end:
	// no watch reports when it has.
	progressEvery = 2 * time.Second
	progressLast  = time.Second
	// The operator retries a failed restore after retryFirst, twice that, and so on up to retryLast. It retries at once when one of the
	// inputs has changed.
	retryFirst = time.Minute
	retryLast  = 30 * time.Minute
)

// LookAgain returns how soon to look again after a step that waits for no user.
func (s Step) LookAgain(seen Observed) time.Duration {
	if s.act == actWatch {
		return lookAtProgress(seen.progress)
	}
	return stepEvery
}

// lookAtProgress returns how soon to ask a Pod again that reports its progress.
func lookAtProgress(told *protocol.Progress) time.Duration {
	if told == nil || told.TotalBytes == 0 {
		return progressEvery
	}
	left := told.TotalBytes - told.Bytes
	if left <= 0 || left < told.BytesPerSecond*int64(progressEvery/time.Second) {
		return progressLast
	}
	return progressEvery
}
