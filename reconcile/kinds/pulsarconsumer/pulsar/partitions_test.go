//go:build !without_pulsar

package pulsar

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/pulsarbroker"
)

// curious makes a consumer ask often for the topic's partitions.
func curious(r *running) { r.limits.ask = 50 * time.Millisecond }

// publish sends this many messages, and returns them.
func publish(cluster *pulsarbroker.Cluster, what string, count int) []string {
	sent := []string{}
	for number := range count {
		sent = append(sent, fmt.Sprint(what, " ", number))
		cluster.Publish(sent[number])
	}
	return sent
}

// consumes waits until all these messages are acknowledged, and fails the test if one was not logged.
func (r *running) consumes(t *testing.T, cluster *pulsarbroker.Cluster, want []string) {
	t.Helper()
	is(t, "acknowledged", cluster.Acknowledged, want...)
	logged := r.log.messages(t)()
	for _, one := range want {
		if !slices.Contains(logged, one) {
			t.Errorf("%q was acknowledged and not logged", one)
		}
	}
}

// TestTheTopicGrows: the consumer consumes further partitions too, and all partitions share the messages fetched ahead.
func TestTheTopicGrows(t *testing.T) {
	t.Parallel()
	const before, after = 2, 8
	cluster := pulsarbroker.New()
	cluster.Partition(before)
	c := consume(t, settingsFor(serve(t, cluster, nil)), curious)
	c.ready(t, true)
	sent := publish(cluster, "before", 10)
	c.consumes(t, cluster, sent)

	cluster.Partition(after)
	want := after * queueFor(after)
	eventually(t, func() string {
		if permits := cluster.Permits(); permits != want {
			return fmt.Sprintf("%d messages may come at once, want %d of all %d partitions", permits, want, after)
		}
		return ""
	})
	c.ready(t, true)
	if subscribed := len(cluster.Consumers()); subscribed != after {
		t.Errorf("%d of %d partitions are consumed", subscribed, after)
	}
	c.consumes(t, cluster, append(sent, publish(cluster, "after", 5*after)...))
	if again := cluster.Redelivered(); len(again) > 0 {
		t.Errorf("delivered twice: %v", again)
	}
	for _, pause := range c.log.pauses(t) {
		if pause > 2*firstPause {
			t.Errorf("it waited %s: a topic that grows is no failure", pause)
		}
	}
}

// TestTheTopicGrowsWhileItIsBusy: messages in progress when the session ended are delivered again.
func TestTheTopicGrowsWhileItIsBusy(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	cluster.Partition(2)
	c := consume(t, settingsFor(serve(t, cluster, nil)), curious)
	c.ready(t, true)
	sent := []string{}
	for partitions := 2; partitions < 7; partitions++ {
		cluster.Partition(partitions)
		sent = append(sent, publish(cluster, fmt.Sprint("of ", partitions), 100)...)
		eventually(t, func() string {
			if asked := len(cluster.Consumers()); asked != partitions {
				return fmt.Sprintf("%d of %d partitions are consumed", asked, partitions)
			}
			return ""
		})
	}
	c.consumes(t, cluster, sent)
}

// TestTheTopicGrowsWhileSubscriptionsAreRefused: consumption stops only as long as subscriptions are refused, and the consumer is not ready
// then.
func TestTheTopicGrowsWhileSubscriptionsAreRefused(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	cluster.Partition(2)
	c := consume(t, settingsFor(serve(t, cluster, nil)), curious)
	c.ready(t, true)
	cluster.Refuse("SUBSCRIBE", "ServiceNotReady", "the topic is being loaded")
	cluster.Partition(5)
	c.ready(t, false)
	sent := publish(cluster, "while it was refused", 20)
	c.log.says(t, "not subscribed, trying again", "ServiceNotReady")
	cluster.Allow("SUBSCRIBE")
	c.ready(t, true)
	c.consumes(t, cluster, append(sent, publish(cluster, "afterwards", 20)...))
}

// TestAQuestionThatFailsIsNoReasonToEnd: a failed request for the partitions does not delay messages either.
func TestAQuestionThatFailsIsNoReasonToEnd(t *testing.T) {
	t.Parallel()
	const question = "PARTITIONED_METADATA"
	for story, fail := range map[string]func(*pulsarbroker.Cluster){
		"it is refused":      func(c *pulsarbroker.Cluster) { c.Refuse(question, "MetadataError", "no quorum") },
		"it is not answered": func(c *pulsarbroker.Cluster) { c.Ignore(question) },
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			cluster := pulsarbroker.New()
			cluster.Partition(2)
			c := consume(t, settingsFor(serve(t, cluster, nil)), curious)
			c.ready(t, true)
			fail(cluster)
			before := count(cluster.Heard(), question)
			sent := []string{}
			for number := range 3 {
				eventually(t, func() string {
					if asked := count(cluster.Heard(), question) - before; asked <= number {
						return fmt.Sprintf("it asked %d times", asked)
					}
					return ""
				})
				sent = append(sent, publish(cluster, fmt.Sprint("after question ", number), 3)...)
				c.consumes(t, cluster, sent)
			}
			if !c.Ready() || count(cluster.Heard(), "SUBSCRIBE") != 2 {
				t.Errorf("it ended the session (ready: %t): %v", c.Ready(), cluster.Heard())
			}

			t.Log("it continues to ask")
			cluster.Partition(3)
			cluster.Allow(question)
			eventually(t, func() string {
				if asked := len(cluster.Consumers()); asked != 3 {
					return fmt.Sprintf("%d of 3 partitions are consumed", asked)
				}
				return ""
			})
		})
	}
}

// TestTheLibraryLooksForNoPartitions: the library takes a period of 0 as one minute, and ends all consumption if its request then fails.
func TestTheLibraryLooksForNoPartitions(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	if period := (&Consumer{}).options(2, &connectionState{}).AutoDiscoveryPeriod; period < year {
		t.Errorf("it looks for further partitions every %s", period)
	}
}
