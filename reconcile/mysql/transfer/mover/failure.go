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
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

// programError is an error that the program itself has found a reason for.
type programError struct {
	reason string
	// final says that another attempt is of no use.
	final bool
	cause error
}

func (e *programError) Error() string { return e.cause.Error() }
func (e *programError) Unwrap() error { return e.cause }

// refused is a failure that another attempt does not mend, retry one that it may.
func refused(reason, format string, values ...any) error {
	return &programError{reason: reason, final: true, cause: fmt.Errorf(format, values...)}
}

func retry(reason, format string, values ...any) error {
	return &programError{reason: reason, cause: fmt.Errorf(format, values...)}
}

// Ended is what a program has to say at its end, and its exit status. Otherwise is the reason of errors that tell none by themselves.
func Ended(outcome transfer.Outcome, err error, otherwise string) (transfer.Outcome, int) {
	if err == nil {
		outcome.Reason = transfer.ReasonCompleted
		return outcome, transfer.ExitDone
	}
	reason, final := judge(err, otherwise)
	outcome.Reason, outcome.Message = reason, oneLine(err)
	if final {
		return outcome, transfer.ExitRefused
	}
	return outcome, transfer.ExitRetry
}

// judge finds the reason of an error by its type, and whether another attempt is of no use.
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
		return transfer.ReasonInterrupted, false
	}
	return otherwise, false
}

// judgeStore is about destinations. Refused credentials and certificates that are not trusted are tried again: Secrets are mounted anew
// each time, and permissions that were just given take minutes to be in force.
func judgeStore(err error) (string, bool) {
	if _, occupied := errors.AsType[*archive.OccupiedError](err); occupied {
		return transfer.ReasonDestinationOccupied, true
	}
	if _, finished := errors.AsType[*archive.FinishedError](err); finished {
		return transfer.ReasonDestinationOccupied, true
	}
	store, ok := errors.AsType[*destination.StoreError](err)
	if !ok {
		return "", false
	}
	switch store.Kind {
	case destination.KindInvalid:
		return transfer.ReasonDestinationRefused, true
	case destination.KindRefused, destination.KindNotFound, destination.KindClockSkew, destination.KindUntrusted, destination.KindEndpoint,
		destination.KindRedirected:
		return transfer.ReasonDestinationRefused, false
	case destination.KindFull:
		return transfer.ReasonDestinationFull, false
	case destination.KindUnavailable:
		return transfer.ReasonDestinationUnavailable, false
	}
	return transfer.ReasonDestinationUnavailable, false
}

// judgeBackup is about a backup that is to be read.
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
		return transfer.ReasonBackupNotFound, true
	case errors.As(err, &incomplete):
		return transfer.ReasonBackupIncomplete, true
	case errors.As(err, &corrupt):
		return transfer.ReasonBackupCorrupt, true
	case errors.As(err, &foreign):
		return transfer.ReasonBackupForeign, true
	case errors.As(err, &key):
		return transfer.ReasonEncryptionKeyInvalid, true
	case errors.As(err, &data):
		return transfer.ReasonDataExists, true
	}
	return "", false
}

// judgeDonor is about the member that is copied.
func judgeDonor(err error) (string, bool) {
	var answer *clone.DonorError
	var unsupported *clone.UnsupportedError
	var network net.Error
	switch {
	case clone.IsBusy(err):
		return transfer.ReasonDonorBusy, false
	case errors.As(err, &answer):
		return transfer.ReasonCopyFailed, false
	case errors.As(err, &unsupported):
		return transfer.ReasonCopyFailed, true
	case errors.As(err, &network):
		return transfer.ReasonDonorUnavailable, false
	}
	return "", false
}

// interrupted names the cause of whatever went wrong because the program was told to end.
func interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if _, final := judge(err, ""); final {
		return err
	}
	return retry(transfer.ReasonInterrupted, "told to end: %w", err)
}

// isFull says whether a file system has no space left for us.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// oneLine is an error for a message: some have several lines.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
