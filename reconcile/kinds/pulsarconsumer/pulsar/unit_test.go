//go:build !without_pulsar

package pulsar

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/pulsarbroker"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestProduce(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	settings := settingsFor(serve(t, cluster, nil))
	ids := []string{}
	if err := Produce(t.Context(), settings, discard(), ProduceOptions{[]byte("Sample Message"), 2, func(id string) { ids = append(ids, id) }}); err != nil {
		t.Fatal(err)
	}
	is(t, "published", cluster.Published, "Sample Message", "Sample Message")
	if len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("the identities are %v", ids)
	}
}

func TestProduceTellsWhyNot(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	cluster.Require("right")
	settings := settingsFor(serve(t, cluster, nil))
	quick := limits{answer: time.Second, alive: time.Second, lost: time.Second}
	err := produceWithin(t.Context(), quick, settings, discard(), ProduceOptions{[]byte("m"), 1, func(string) { t.Error("sent") }})
	if err == nil || !strings.Contains(err.Error(), "produce to my-topic") || !strings.Contains(err.Error(), "Failed to authenticate") {
		t.Errorf("the error is %v", err)
	}
}

func TestSettingsThatNoAttemptCanMend(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		settings Settings
		says     string
	}{
		"no server":       {Settings{Topic: "t", Subscription: "s"}, `PULSAR_SERVER=""`},
		"no scheme":       {Settings{Server: "broker", Topic: "t", Subscription: "s"}, "it must begin with pulsar://"},
		"another scheme":  {Settings{Server: "http://broker", Topic: "t", Subscription: "s"}, "use pulsar://host:6650"},
		"no topic":        {Settings{Server: "pulsar://broker", Subscription: "s"}, "PULSAR_TOPIC: it is not set"},
		"no subscription": {Settings{Server: "pulsar://broker", Topic: "t"}, "PULSAR_SUBSCRIPTION_NAME: it is not set"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			c := &Consumer{Settings: test.settings, Log: discard()}
			if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v, want %q", err, test.says)
			}
		})
	}
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	given := map[string]string{
		"PULSAR_SERVER": "a", "PULSAR_TOPIC": "b", "PULSAR_SUBSCRIPTION_NAME": "c", "PULSAR_CONSUMER_NAME": "d", "PULSAR_CREDENTIALS": "e",
	}
	if got := FromEnvironment(func(name string) string { return given[name] }); got != (Settings{"a", "b", "c", "d", "e"}) {
		t.Errorf("read %+v", got)
	}
}

func TestPayloadsInTheLog(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		content []byte
		want    string
	}{
		"text":                      {[]byte("Sample Message"), "payload=Sample Message"},
		"nothing":                   {nil, "payload="},
		"no text":                   {[]byte{0xff, 0}, "payloadBase64=/wA="},
		"long":                      {bytes.Repeat([]byte("x"), maxLogged+1), "payload=" + strings.Repeat("x", maxLogged) + " size=8193 cut=true"},
		"cut between characters":    {[]byte(strings.Repeat("x", maxLogged-1) + "ä"), "payload=" + strings.Repeat("x", maxLogged-1) + " size=8193 cut=true"},
		"just as long as it may be": {bytes.Repeat([]byte("x"), maxLogged), "payload=" + strings.Repeat("x", maxLogged)},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			said := []string{}
			for _, attribute := range payload(test.content) {
				said = append(said, fmt.Sprintf("%s=%s", attribute.Key, attribute.Value))
			}
			if got := strings.Join(said, " "); got != test.want {
				t.Errorf("logged %.100s", got)
			}
		})
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := &connectionState{now: func() time.Time { return now }, log: discard()}
	if !l.isConnected() || l.lostFor() != 0 {
		t.Error("a new link is whole")
	}
	one := l.policy()
	now = now.Add(time.Minute)
	other := l.policy()
	now = now.Add(time.Second)
	if l.isConnected() || l.lostFor() != time.Minute+time.Second {
		t.Errorf("two partitions are lost, for %s", l.lostFor())
	}
	one.Reset()
	if l.isConnected() || l.lostFor() != time.Second {
		t.Errorf("one partition is lost, for %s", l.lostFor())
	}
	other.Reset()
	if !l.isConnected() || l.lostFor() != 0 {
		t.Error("all is connected")
	}
}

func TestQueuesShareTheMemory(t *testing.T) {
	t.Parallel()
	for partitions, want := range map[int]int{0: 20, 1: 20, 3: 6, 20: 1, 21: 1, 1000: 1} {
		if got := queueFor(partitions); got != want {
			t.Errorf("of each of %d partitions %d messages are fetched ahead, want %d", partitions, got, want)
		}
	}
}

func TestPausesGrow(t *testing.T) {
	t.Parallel()
	p := &backoffPolicy{next: firstPause}
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		least := want * time.Millisecond
		if got := p.Next(); got < least || got > least+least/5 {
			t.Errorf("waits %s, want %s and a fifth more at most", got, least)
		}
	}
	if !p.IsMaxBackoffReached() {
		t.Error("it can wait no longer, and does not say so")
	}
	p.Reset()
	if got := p.Next(); got > 2*firstPause {
		t.Errorf("waits %s after success", got)
	}
}

func TestTroubleKeepsTheLastWarning(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	kept := &lastWarning{}
	log := libraryLog(kept.watch(slog.New(slog.NewTextHandler(&shown, nil))))
	log.Info("Connecting to broker")
	log.Debug("nothing of interest")
	if shown.Len() != 0 || kept.take() != "" {
		t.Errorf("the library's doings are in the log: %s", shown.String())
	}
	log.WithError(context.DeadlineExceeded).Warn("Failed to connect to broker.")
	log.WithError(context.Canceled).Error("Failed to create consumer")
	if got := kept.take(); got != "Failed to connect to broker: context deadline exceeded" {
		t.Errorf("kept %q", got)
	}
	if kept.take() != "" {
		t.Error("it was taken already")
	}
	if !strings.Contains(shown.String(), "Failed to connect to broker.") {
		t.Errorf("a warning is not in the log: %s", shown.String())
	}
}
