package replication

import "time"

// Ear knows since when a receiver has got nothing from its primary. A primary that has nothing to send sends a heartbeat five times a
// second (SOURCE_HEARTBEAT_PERIOD). While it sends a large transaction, it sends none, but positions grow.
type Ear struct {
	got   Received
	since time.Time
	// looked is the time of the last look.
	looked time.Time
}

// Received is how much a receiver has got. It changes with everything that arrives.
type Received struct {
	// Source is the address of the source. Heartbeats counts those that have arrived, File and Position are where the receiver reads.
	Source     string
	Heartbeats int64
	File       string
	Position   string
	// RelayLogSpace is the size of the relay log, in bytes. It shrinks when the applier has finished with a file.
	RelayLogSpace int64
}

// Observe returns the ear after another look at the channel.
func (e Ear) Observe(now time.Time, channel Channel) Ear {
	got := channel.Received
	e.got.RelayLogSpace = min(e.got.RelayLogSpace, got.RelayLogSpace)
	if channel.IO == "No" || !channel.KnowsReceived || e.since.IsZero() || got != e.got {
		return Ear{got: got, since: e.notBefore(got, now.Add(-channel.QuietFor)), looked: now}
	}
	e.looked = now
	return e
}

// notBefore is when something has arrived last, which is after the last look if mysqld has read something since. The kernel may have been
// asked about a connection of another client.
func (e Ear) notBefore(got Received, heard time.Time) time.Time {
	got.RelayLogSpace = e.got.RelayLogSpace // it also grows when mysqld begins another file
	if got != e.got && heard.Before(e.looked) {
		return e.looked
	}
	return heard
}

// SilentFor is for how long nothing has arrived; 0 if that is not known.
func (e Ear) SilentFor(now time.Time) time.Duration {
	if e.since.IsZero() {
		return 0
	}
	return now.Sub(e.since)
}
