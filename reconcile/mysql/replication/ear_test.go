package replication

import (
	"testing"
	"time"
)

func TestAnEarKnowsHowLongItsSourceIsSilent(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC)
	at := func(after int, heartbeats, space int64, io string) (time.Time, Channel) {
		got := Received{Source: "10.0.0.1", Heartbeats: heartbeats, RelayLogSpace: space}
		return began.Add(time.Duration(after) * time.Second), Channel{IO: io, KnowsReceived: true, Received: got}
	}
	var ear Ear
	for _, step := range []struct {
		what  string
		after int
		// What the channel shows, and for how many seconds its source is silent.
		heartbeats, space int64
		io                string
		want              int
	}{
		{"the first look knows nothing", 0, 7, 100, "Yes", 0},
		{"nothing has arrived", 3, 7, 100, "Yes", 3},
		{"still nothing, and the connection is lost", 5, 7, 100, "Connecting", 5},
		{"a heartbeat", 6, 8, 100, "Yes", 0},
		{"a part of a large transaction", 16, 8, 900, "Yes", 0},
		{"nothing again", 20, 8, 900, "Yes", 4},
		{"the applier has finished with a file", 22, 8, 500, "Yes", 6},
		{"a part of another transaction", 23, 8, 600, "Yes", 0},
		{"the receiver is stopped: it need not get anything", 21, 8, 900, "No", 0},
	} {
		now, channel := at(step.after, step.heartbeats, step.space, step.io)
		ear = ear.Observe(now, channel)
		if got := int(ear.SilentFor(now).Seconds()); got != step.want {
			t.Errorf("%s: silent for %d s, want %d", step.what, got, step.want)
		}
	}
	if (Ear{}).SilentFor(began) != 0 {
		t.Error("without a look the source is silent")
	}
	now, channel := at(40, 9, 900, "Yes")
	channel.QuietFor = 700 * time.Millisecond
	if got := ear.Observe(now, channel).SilentFor(now); got != channel.QuietFor {
		t.Errorf("the machine got the last packet %s ago, and the source is silent for %s", channel.QuietFor, got)
	}
	now, channel = at(50, 14, 900, "Yes")
	channel.QuietFor = time.Minute
	if got := ear.Observe(began.Add(49*time.Second), channelAt(at(49, 9, 900, "Yes"))).Observe(now, channel).SilentFor(now); got != time.Second {
		t.Errorf("heartbeats have arrived since the look a second ago, and the source is silent for %s", got)
	}
	now, channel = at(0, 7, 100, "Yes")
	channel.KnowsReceived = false
	deaf := Ear{}.Observe(now, channel).Observe(now.Add(time.Hour), channel)
	if got := deaf.SilentFor(now.Add(time.Hour)); got != 0 {
		t.Errorf("heartbeats are not known, and the source is silent for %s", got)
	}
}

func channelAt(_ time.Time, channel Channel) Channel { return channel }
