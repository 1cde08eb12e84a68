package migration

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// The pauses between the attempts of one request grow from firstPause to lastPause. If the API server asks for a longer pause, persist
// waits for that time, up to longestPause.
const (
	firstPause   = 100 * time.Millisecond
	lastPause    = 5 * time.Second
	longestPause = 30 * time.Second
	// attemptTimeout ends an attempt without an answer. The API server itself gives up after a minute (its --request-timeout).
	attemptTimeout = 60 * time.Second
)

// retry sends a request until it succeeds or fails permanently. It retries failures that may pass (isTransient), with growing pauses, for
// Patience. So the request must be one that may take effect twice.
func (m Migrator) retry(ctx context.Context, request func(context.Context) error) error {
	patience, end := context.WithTimeout(ctx, m.RetryTimeout)
	defer end()
	pauses := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 100, Cap: lastPause}
	var last error
	for {
		err := attempt(patience, request)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !isTransient(err):
			return err
		case last == nil || patience.Err() == nil:
			last = err // an attempt that the end of Patience cancelled says less than the one before
		}
		pause := pauses.Step()
		if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
			pause = max(pause, min(time.Duration(seconds)*time.Second, longestPause))
		}
		if stopped := sleep(patience, pause); stopped == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &retryTimeoutError{after: m.RetryTimeout, cause: last}
	}
}

func attempt(ctx context.Context, request func(context.Context) error) error {
	ctx, end := context.WithTimeout(ctx, attemptTimeout)
	defer end()
	return request(ctx)
}

// retryTimeoutError says that a failure that may pass did not pass within Patience.
type retryTimeoutError struct {
	after time.Duration
	cause error
}

func (e *retryTimeoutError) Error() string {
	return fmt.Sprintf("no success within %v: %v", e.after, e.cause)
}

func (e *retryTimeoutError) Unwrap() error {
	return e.cause
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
