package clone

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// releaseTimeout bounds what is done for the donor once a copy has ended.
const releaseTimeout = 5 * time.Second

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
	for _, thread := range []uint32{c.main.thread, c.second.thread} {
		_ = s.exec(fmt.Sprintf("KILL CONNECTION %d", thread)) // it may be gone already
	}
}
