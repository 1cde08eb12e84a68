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

// decision is a pass's result, with the requeue time and the error.
type decision struct {
	result       result
	requeueAfter time.Duration
	err          error
}

// decide returns the verdict of a pass.
func decide(outcome Outcome, found state, err error) decision {
	var panicked *panicError
	switch {
	case found.behind:
		return decision{result: resultBehind, requeueAfter: requeueForCache}
	case err == nil && found.gone:
		return decision{result: resultGone}
	case err == nil:
		return decision{result: resultDone, requeueAfter: outcome.RequeueAfter}
	case errors.As(err, &panicked):
		return decision{result: resultPanicked, err: err}
	case apierrors.IsConflict(err):
		return decision{result: resultConflict, err: err}
	case IsUnavailable(err):
		return decision{result: resultUnavailable, requeueAfter: requeueForServer, err: err}
	default:
		return decision{result: resultFailed, err: err}
	}
}

// failuresUntilTold is after how many successive failed passes the operator writes an event: about half a minute.
const failuresUntilTold = 12

// persistentFailureEvents returns the event about an error that persists. If a kind can explain a problem, it reports it itself, and its
// pass returns no error.
func persistentFailureEvents(err error, failures int) []Event {
	if failures < failuresUntilTold || decide(Outcome{}, state{}, err).result != resultFailed || IsNamespaceTerminating(err) {
		return nil
	}
	return []Event{{Type: Warning, Reason: "ReconcileFailed", Action: "Reconcile", Note: err.Error()}}
}

// logDecision writes the one log line of a pass. Changes are already logged where they were made. Only failures that concern the object are
// logged as errors.
func logDecision(logger logr.Logger, reached decision, took time.Duration) {
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
