package mover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

func TestMeterTellsTheRateOfTheLastSeconds(t *testing.T) {
	t.Parallel()
	m := &meter{}
	at := time.Unix(0, 0)
	for second := range 10 {
		m.sample(at.Add(time.Duration(second) * time.Second))
		m.update(func(p *protocol.Progress) { p.Bytes += 10 << 20 })
	}
	if rate := m.now().BytesPerSecond; rate != 10<<20 {
		t.Errorf("%d bytes a second", rate)
	}
	for second := range samples {
		m.sample(at.Add(time.Duration(10+second) * time.Second))
	}
	if rate := m.now().BytesPerSecond; rate != 0 {
		t.Errorf("%d bytes a second while it stands still", rate)
	}
}

func TestEndedTellsTheReasonAndWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	store := func(kind destination.Kind) error {
		return &destination.StoreError{Kind: kind, Op: "write", Err: errors.New("no")}
	}
	tests := map[string]struct {
		err    error
		reason string
		status int
	}{
		"success":                            {nil, protocol.ReasonCompleted, protocol.ExitDone},
		"another backup's folder":            {&archive.OccupiedError{URL: "s3://b"}, protocol.ReasonDestinationOccupied, protocol.ExitRefused},
		"a URL that is invalid":              {store(destination.KindInvalid), protocol.ReasonDestinationRefused, protocol.ExitRefused},
		"wrong credentials":                  {store(destination.KindRefused), protocol.ReasonDestinationRefused, protocol.ExitRetry},
		"no such bucket":                     {store(destination.KindNotFound), protocol.ReasonDestinationRefused, protocol.ExitRetry},
		"clocks apart":                       {store(destination.KindClockSkew), protocol.ReasonDestinationRefused, protocol.ExitRetry},
		"a certificate of no known CA":       {store(destination.KindUntrusted), protocol.ReasonDestinationRefused, protocol.ExitRetry},
		"an endpoint not named":              {store(destination.KindEndpoint), protocol.ReasonDestinationRefused, protocol.ExitRetry},
		"a redirect":                         {store(destination.KindRedirected), protocol.ReasonDestinationRefused, protocol.ExitRetry},
		"full":                               {store(destination.KindFull), protocol.ReasonDestinationFull, protocol.ExitRetry},
		"cut off":                            {store(destination.KindUnavailable), protocol.ReasonDestinationUnavailable, protocol.ExitRetry},
		"no backup":                          {&archive.NotFoundError{}, protocol.ReasonBackupNotFound, protocol.ExitRefused},
		"half a backup":                      {&archive.IncompleteError{}, protocol.ReasonBackupIncomplete, protocol.ExitRefused},
		"a flipped bit":                      {&archive.CorruptError{}, protocol.ReasonBackupCorrupt, protocol.ExitRefused},
		"not this operator's":                {&archive.ForeignError{}, protocol.ReasonBackupForeign, protocol.ExitRefused},
		"the wrong key":                      {&encryption.KeyError{}, protocol.ReasonEncryptionKeyInvalid, protocol.ExitRefused},
		"data on the volume":                 {&agent.OccupiedError{}, protocol.ReasonDataExists, protocol.ExitRefused},
		"the donor is busy":                  {&clone.DonorError{Number: 3634}, protocol.ReasonDonorBusy, protocol.ExitRetry},
		"the donor refuses":                  {&clone.DonorError{Number: 1227}, protocol.ReasonCopyFailed, protocol.ExitRetry},
		"the donor refuses clients":          {&clone.DonorError{Number: 3032}, protocol.ReasonCopyFailed, protocol.ExitRetry},
		"a file that is not supported":       {&clone.UnsupportedError{}, protocol.ReasonCopyFailed, protocol.ExitRefused},
		"the donor is gone":                  {&netError{}, protocol.ReasonDonorUnavailable, protocol.ExitRetry},
		"stopped":                            {context.Canceled, protocol.ReasonInterrupted, protocol.ExitRetry},
		"a part gone meanwhile":              {retryDamaged(&archive.IncompleteError{Reason: "part-00001 is missing"}), protocol.ReasonCopyFailed, protocol.ExitRetry},
		"a manifest not its own":             {retryDamaged(fmt.Errorf("finish: %w", &archive.CorruptError{})), protocol.ReasonCopyFailed, protocol.ExitRetry},
		"a reason of the program":            {refused(protocol.ReasonVolumeTooSmall, "full: %w", syscall.ENOSPC), protocol.ReasonVolumeTooSmall, protocol.ExitRefused},
		"several, of which one has a reason": {errors.Join(errors.New("and another"), store(destination.KindFull)), protocol.ReasonDestinationFull, protocol.ExitRetry},
		"anything else":                      {errors.New("who knows"), protocol.ReasonRestoreFailed, protocol.ExitRetry},
	}
	for name, test := range tests {
		for _, err := range []error{test.err, wrapped(test.err)} {
			outcome, status := Ended(protocol.Outcome{}, err, protocol.ReasonRestoreFailed)
			if outcome.Reason != test.reason || status != test.status {
				t.Errorf("%s: %s, exit status %d; want %s, %d", name, outcome.Reason, status, test.reason, test.status)
			}
			if err != nil && (outcome.Message == "" || strings.Contains(outcome.Message, "\n")) {
				t.Errorf("%s: it says %q", name, outcome.Message)
			}
		}
	}
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("copy: %w", err)
}

// netError is an error as package net returns it.
type netError struct{}

func (*netError) Error() string   { return "i/o timeout" }
func (*netError) Timeout() bool   { return true }
func (*netError) Temporary() bool { return true }

func TestInterruptedNamesTheCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	lost := &destination.StoreError{Kind: destination.KindUnavailable, Op: "write", Err: context.Canceled}
	if reason, _ := judge(interrupted(ctx, lost), ""); reason != protocol.ReasonDestinationUnavailable {
		t.Errorf("it was not stopped: %s", reason)
	}
	cancel()
	if reason, final := judge(interrupted(ctx, lost), ""); reason != protocol.ReasonInterrupted || final {
		t.Errorf("stopped: %s, final: %v", reason, final)
	}
	if reason, _ := judge(interrupted(ctx, &archive.CorruptError{}), ""); reason != protocol.ReasonBackupCorrupt {
		t.Errorf("an error from before it was stopped: %s", reason)
	}
	if interrupted(ctx, nil) != nil {
		t.Error("success becomes a failure")
	}
}
