package reconcile

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// result is the outcome of one reconcile pass.
type result string

const (
	resultDone        result = "done"
	resultGone        result = "gone"
	resultBehind      result = "cache_behind"
	resultConflict    result = "conflict"
	resultUnavailable result = "api_unavailable"
	resultFailed      result = "failed"
	resultPanicked    result = "panicked"
	resultStopped     result = "stopped"
)

// verdict is a pass's result, and what follows from it.
type verdict struct {
	result result
	again  time.Duration
	err    error
}

// judge turns what happened in a pass into its verdict.
func judge(outcome Outcome, found state, err error) verdict {
	var panicked *panicError
	switch {
	case found.behind:
		return verdict{result: resultBehind, again: againForCache}
	case err == nil && found.gone:
		return verdict{result: resultGone}
	case err == nil:
		return verdict{result: resultDone, again: outcome.Again}
	case errors.As(err, &panicked):
		return verdict{result: resultPanicked, err: err}
	case apierrors.IsConflict(err):
		return verdict{result: resultConflict, err: err}
	case IsUnavailable(err):
		return verdict{result: resultUnavailable, again: againForServer, err: err}
	default:
		return verdict{result: resultFailed, err: err}
	}
}

// failuresUntilTold is after how many passes that failed one after the other people are told: about half a minute.
const failuresUntilTold = 12

// keepsFailing is what to tell of an error that does not pass. What a kind can explain it tells itself, and it is no error then.
func keepsFailing(err error, failures int) []Event {
	if failures < failuresUntilTold || judge(Outcome{}, state{}, err).result != resultFailed || IsNamespaceTerminating(err) {
		return nil
	}
	return []Event{{Type: Warning, Reason: "ReconcileFailed", Action: "Reconcile", Note: err.Error()}}
}

// logVerdict writes the one line of a pass. What was changed was said by those who changed it; a failure that concerns the object is
// the only thing said at once.
func logVerdict(logger logr.Logger, reached verdict, took time.Duration) {
	logger = logger.WithValues(logOp, "reconcile", logDuration, took.Round(time.Millisecond).String())
	quiet := reached.result != resultFailed && reached.result != resultPanicked
	if reached.err == nil || quiet || IsNamespaceTerminating(reached.err) {
		if reached.err != nil {
			logger = logger.WithValues(logError, reached.err.Error())
		}
		logger.V(1).Info("pass "+string(reached.result), logReason, string(reached.result))
		return
	}
	if panicked, ok := errors.AsType[*panicError](reached.err); ok {
		logger = logger.WithValues("stack", string(panicked.stack))
	}
	logger.Error(reached.err, "pass "+string(reached.result), logReason, string(reached.result))
}
