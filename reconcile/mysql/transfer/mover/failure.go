package mover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// programError is an error whose reason the program itself has found.
type programError struct {
	reason string
	// final means that a retry cannot succeed.
	final bool
	cause error
}

func (e *programError) Error() string { return e.cause.Error() }
func (e *programError) Unwrap() error { return e.cause }

// refused returns an error that a retry cannot fix. retry returns an error that a retry may fix.
func refused(reason, format string, values ...any) error {
	return &programError{reason: reason, final: true, cause: fmt.Errorf(format, values...)}
}

func retry(reason, format string, values ...any) error {
	return &programError{reason: reason, cause: fmt.Errorf(format, values...)}
}

// Ended returns a program's final report and its exit status. otherwise is the reason for errors without a reason of their own.
func Ended(outcome protocol.Outcome, err error, otherwise string) (protocol.Outcome, int) {
	if err == nil {
		outcome.Reason = protocol.ReasonCompleted
		return outcome, protocol.ExitDone
	}
	reason, final := judge(err, otherwise)
	outcome.Reason, outcome.Message = reason, oneLine(err)
	if final {
		return outcome, protocol.ExitRefused
	}
	return outcome, protocol.ExitRetry
}

// judge returns the reason of an error by its type, and whether a retry cannot succeed.
func judge(err error, otherwise string) (reason string, final bool) {
	if own, ok := errors.AsType[*programError](err); ok {
		return own.reason, own.final
	}
	for _, opinion := range []func(error) (string, bool){judgeStore, judgeBackup, judgeDonor} {
		if reason, final := opinion(err); reason != "" {
			return reason, final
		}
	}
	if errors.Is(err, context.Canceled) {
		return protocol.ReasonInterrupted, false
	}
	return otherwise, false
}

// judgeStore judges errors of destinations. Refused credentials and untrusted certificates are retried: each Pod mounts the Secrets again,
// and new permissions need minutes to take effect.
func judgeStore(err error) (string, bool) {
	if _, occupied := errors.AsType[*archive.OccupiedError](err); occupied {
		return protocol.ReasonDestinationOccupied, true
	}
	if _, finished := errors.AsType[*archive.FinishedError](err); finished {
		return protocol.ReasonDestinationOccupied, true
	}
	store, ok := errors.AsType[*destination.StoreError](err)
	if !ok {
		return "", false
	}
	switch store.Kind {
	case destination.KindInvalid:
		return protocol.ReasonDestinationRefused, true
	case destination.KindRefused, destination.KindNotFound, destination.KindClockSkew, destination.KindUntrusted, destination.KindEndpoint,
		destination.KindRedirected:
		return protocol.ReasonDestinationRefused, false
	case destination.KindFull:
		return protocol.ReasonDestinationFull, false
	case destination.KindUnavailable:
		return protocol.ReasonDestinationUnavailable, false
	}
	return protocol.ReasonDestinationUnavailable, false
}

// judgeBackup judges errors of a backup that is read.
func judgeBackup(err error) (string, bool) {
	var (
		notFound   *archive.NotFoundError
		incomplete *archive.IncompleteError
		corrupt    *archive.CorruptError
		foreign    *archive.ForeignError
		key        *encryption.KeyError
		data       *agent.OccupiedError
	)
	switch {
	case errors.As(err, &notFound):
		return protocol.ReasonBackupNotFound, true
	case errors.As(err, &incomplete):
		return protocol.ReasonBackupIncomplete, true
	case errors.As(err, &corrupt):
		return protocol.ReasonBackupCorrupt, true
	case errors.As(err, &foreign):
		return protocol.ReasonBackupForeign, true
	case errors.As(err, &key):
		return protocol.ReasonEncryptionKeyInvalid, true
	case errors.As(err, &data):
		return protocol.ReasonDataExists, true
	}
	return "", false
}

// judgeDonor judges errors of the member that is copied.
func judgeDonor(err error) (string, bool) {
	var answer *clone.DonorError
	var unsupported *clone.UnsupportedError
	var network net.Error
	switch {
	case clone.IsBusy(err):
		return protocol.ReasonDonorBusy, false
	case errors.As(err, &answer):
		return protocol.ReasonCopyFailed, false
	case errors.As(err, &unsupported):
		return protocol.ReasonCopyFailed, true
	case errors.As(err, &network):
		return protocol.ReasonDonorUnavailable, false
	}
	return "", false
}

// interrupted gives errors the reason Interrupted if the program was stopped, unless they are final.
func interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if _, final := judge(err, ""); final {
		return err
	}
	return retry(protocol.ReasonInterrupted, "the program was stopped: %w", err)
}

// isFull reports whether a file system has no space left for this process.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// oneLine formats an error for a message: some errors have several lines.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
