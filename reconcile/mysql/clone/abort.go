package clone

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

const (
	// releaseTimeout bounds what is done for the donor once a copy has ended.
	releaseTimeout = 5 * time.Second
	// lookEvery is how often the donor is asked whether it has done so; what it waits in looks as often.
	lookEvery = 100 * time.Millisecond
)

// exit leaves the clone protocol. The copy is complete: a donor that does not hear of it finds out when the connections end.
func (c *copying) exit() {
	for _, s := range []*session{c.second, c.main} {
		s.line.silence = releaseTimeout
		_ = s.perform(commandExit, nil, func(response byte, _ *message) error {
			return protocolError("response %d to the end", response)
		})
	}
}

// isDonors says whether the donor gave up by itself.
func isDonors(err error) bool {
	var donor *DonorError
	return errors.As(err, &donor)
}

// release makes the donor drop its snapshot at once. If the connections only ended, it would take that for a failure of the network,
// and keep snapshot, redo log and page tracking for five minutes in case that the recipient comes back (manual,
// "clone_donor_timeout_after_network_failure"), and DDL on the file that was being sent would wait as long. As the account's own,
// the threads may be killed without further privileges. If the donor cannot be reached, it has to wait; its next recipient is
// served all the same.
func (c *copying) release(ctx context.Context) {
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
		return // another server's threads have the same numbers
	}
	for _, thread := range c.threads() {
		_ = s.exec("KILL CONNECTION " + thread) // it may be gone already
	}
	for s.sees(c.threads()) {
		select {
		case <-bounded.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

func (c *copying) threads() []string {
	return []string{strconv.FormatUint(uint64(c.main.thread), 10), strconv.FormatUint(uint64(c.second.thread), 10)}
}

// sees says whether one of the threads is still there.
func (s *session) sees(threads []string) bool {
	rows, err := s.query("SHOW PROCESSLIST")
	return err == nil && slices.ContainsFunc(rows, func(row []string) bool { return slices.Contains(threads, row[0]) })
}
