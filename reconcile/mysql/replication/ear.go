package replication

import "time"

// Ear knows since when a receiver has got nothing from its primary. A primary that has nothing to send sends a heartbeat five times a
// second (SOURCE_HEARTBEAT_PERIOD). While it sends a large transaction, it sends none, but positions grow.
type Ear struct {
	got   Received
	since time.Time
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
		return Ear{got, now.Add(-channel.QuietFor)}
	}
	return e
}

// SilentFor is for how long nothing has arrived; 0 if that is not known.
func (e Ear) SilentFor(now time.Time) time.Duration {
	if e.since.IsZero() {
		return 0
	}
	return now.Sub(e.since)
}
