package clone

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

const (
	// releaseTimeout limits what is done for the donor after a copy has ended.
	releaseTimeout = 5 * time.Second
	// lookEvery is how often the donor is asked whether its threads have ended. The donor's own waits check as often.
	lookEvery = 100 * time.Millisecond
)

// exit leaves the clone protocol. The copy is complete. A donor that does not receive COM_EXIT notices the end when the connections close.
func (c *copier) exit() {
	for _, s := range []*session{c.second, c.main} {
		s.line.silence = releaseTimeout
		_ = s.perform(commandExit, nil, func(response byte, _ *message) error {
			return protocolError("response %d to COM_EXIT", response)
		})
	}
}

// endedByDonor reports whether the donor itself ended the copy with an error.
func endedByDonor(err error) bool {
	var donor *DonorError
	return errors.As(err, &donor)
}

// release makes the donor drop its snapshot at once. If the connections only closed, the donor would take that for a network failure. It
// would keep snapshot, redo log and page tracking for five minutes in case the recipient reconnects (manual,
// "clone_donor_timeout_after_network_failure"). DDL on the file that was being sent would wait as long. The account owns the threads, so it
// may kill them without further privileges. If the donor is unreachable, it keeps the snapshot for these five minutes; it serves its next
// recipient all the same.
func (c *copier) release(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	s, err := connect(bounded, c.donor, releaseTimeout)
	if err != nil {
		return
	}
	defer s.close()
	stop := context.AfterFunc(bounded, s.line.interrupt)
	defer stop()
	if s.isSame(c.result.ServerUUID) != nil {
		return // another server: its threads may have the same numbers
	}
	for _, thread := range c.threads() {
		_ = s.exec("KILL CONNECTION " + thread) // the thread may be gone already
	}
	for s.hasThread(c.threads()) {
		select {
		case <-bounded.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

func (c *copier) threads() []string {
	return []string{strconv.FormatUint(uint64(c.main.thread), 10), strconv.FormatUint(uint64(c.second.thread), 10)}
}

// hasThread reports whether one of the threads still exists.
func (s *session) hasThread(threads []string) bool {
	rows, err := s.query("SHOW PROCESSLIST")
	return err == nil && slices.ContainsFunc(rows, func(row []string) bool { return slices.Contains(threads, row[0]) })
}
