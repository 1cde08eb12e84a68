//go:build !without_pulsar

package pulsar

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mysql-operator/mysql-operator/test/pulsarbroker"
)

// TestPartitionsShareWhatIsFetchedAhead: the memory that a Pod needs must not depend on the number of partitions.
func TestPartitionsShareWhatIsFetchedAhead(t *testing.T) {
	t.Parallel()
	const partitions = 8
	cluster := pulsarbroker.New()
	cluster.Partition(partitions)
	c := consume(t, settingsFor(serve(t, cluster, nil)))
	c.ready(t, true)
	eventually(t, func() string {
		if asked := count(cluster.Heard(), "FLOW"); asked < partitions {
			return fmt.Sprintf("%d of %d partitions were asked for messages", asked, partitions)
		}
		return ""
	})
	if permits := cluster.Permits(); permits < partitions || permits > receiverQueue {
		t.Errorf("%d messages may come at once, want one of each partition and %d in all", permits, receiverQueue)
	}
	want := []string{}
	for number := range 3 * receiverQueue {
		want = append(want, fmt.Sprint("message ", number))
		cluster.Publish(want[number])
	}
	is(t, "acknowledged", cluster.Acknowledged, want...)
}

func TestWhatWasNotAcknowledgedComesAgain(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	broker := serve(t, cluster, nil)
	c := consume(t, settingsFor(broker))
	c.ready(t, true)
	cluster.Ignore("ACK")
	cluster.Publish("important")
	eventually(t, func() string {
		if !slices.Contains(cluster.Heard(), "ACK") {
			return "no acknowledgement was sent"
		}
		return ""
	})
	broker.Cut()
	cluster.Allow("ACK")
	is(t, "acknowledged", cluster.Acknowledged, "important")
	is(t, "logged", c.log.messages(t), "important", "important")
	lines := c.log.lines(t)
	if last := lines[slices.IndexFunc(lines, func(one line) bool { return one.Redelivered > 0 })]; last.Redelivered != 1 {
		t.Errorf("the log does not tell that it came again: %+v", lines)
	}
}

// TestWhatCannotBeLoggedIsNotAcknowledged: a write to standard output fails. The consumer cannot know what the container runtime loses of
// the log after that.
func TestWhatCannotBeLoggedIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	c := consume(t, settingsFor(serve(t, cluster, nil)))
	c.ready(t, true)
	c.log.refuse(syscall.EIO)
	cluster.Publish("important")
	eventually(t, func() string {
		if tries := count(cluster.Heard(), "SUBSCRIBE"); tries < 4 {
			return fmt.Sprintf("it has started again %d times", tries-1)
		}
		return ""
	})
	is(t, "acknowledged", cluster.Acknowledged)
	c.log.refuse(nil)
	is(t, "acknowledged", cluster.Acknowledged, "important")
	is(t, "logged", c.log.messages(t), "important")
	pauses := c.log.pauses(t)
	if !slices.IsSorted(pauses) || pauses[len(pauses)-1] < 4*firstPause {
		t.Errorf("between its attempts it waits %v: the pauses must grow", pauses)
	}
}

func TestStopSendsWhatIsDue(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	broker := serve(t, cluster, nil)
	c := consume(t, settingsFor(broker))
	c.ready(t, true)
	for number := range 500 {
		cluster.Publish(fmt.Sprint(number))
	}
	eventually(t, func() string {
		if len(c.log.messages(t)()) == 0 {
			return "no message is logged"
		}
		return ""
	})
	c.end(t)
	logged := c.log.messages(t)()
	if done := cluster.Acknowledged(); strings.Join(done, " ") != strings.Join(logged, " ") {
		t.Errorf("logged %d messages and acknowledged %d: what was done will be done again", len(logged), len(done))
	}
	if left := cluster.Consumers(); len(left) != 0 {
		t.Errorf("still subscribed: %v", left)
	}
	if heard := cluster.Heard(); heard[len(heard)-1] != "CLOSE_CONSUMER" {
		t.Errorf("the last word was %s", heard[len(heard)-1])
	}

	t.Log("another consumer continues where it stopped")
	next := consume(t, settingsFor(broker))
	eventually(t, func() string {
		if done := len(cluster.Acknowledged()); done != 500 {
			return fmt.Sprintf("%d are acknowledged", done)
		}
		return ""
	})
	if sum := len(logged) + len(next.log.messages(t)()); sum != 500 {
		t.Errorf("%d messages were logged, want each of 500 once", sum)
	}
}

// TestStopInTheMiddleOfABatch: producers put messages into batches by default. An orderly stop must not cause half a batch to be logged
// again.
func TestStopInTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		cluster func(*pulsarbroker.Cluster)
		done    []string
		again   []string
	}{
		"the broker keeps what was acknowledged of it":    {func(*pulsarbroker.Cluster) {}, []string{"a"}, []string{"b", "c"}},
		"the broker knows acknowledged batches only":      {(*pulsarbroker.Cluster).AcknowledgeWholeBatches, nil, []string{"a", "b", "c"}},
		"the batch is one of a topic that has partitions": {func(c *pulsarbroker.Cluster) { c.Partition(2) }, []string{"a"}, []string{"b", "c"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			cluster := pulsarbroker.New()
			test.cluster(cluster)
			broker := serve(t, cluster, nil)
			c := consume(t, settingsFor(broker))
			c.ready(t, true)
			c.log.after(c.stop)
			cluster.Publish("a", "b", "c")
			is(t, "logged", c.log.messages(t), "a")
			c.end(t)
			is(t, "logged to the end", c.log.messages(t), "a")
			is(t, "acknowledged", cluster.Acknowledged, test.done...)

			next := consume(t, settingsFor(broker))
			is(t, "acknowledged", cluster.Acknowledged, "a", "b", "c")
			is(t, "logged by the next", next.log.messages(t), test.again...)
		})
	}
}

func TestTwoConsumersShareTheTopic(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	broker := serve(t, cluster, nil)
	first := consume(t, settingsFor(broker))
	other := settingsFor(broker)
	other.Consumer = "pod-2"
	second := consume(t, other)
	eventually(t, func() string {
		if asked := count(cluster.Heard(), "FLOW"); asked < 2 {
			return fmt.Sprintf("%d of 2 consumers have asked for messages", asked)
		}
		return ""
	})
	for number := range 100 {
		cluster.Publish(fmt.Sprint(number))
	}
	eventually(t, func() string {
		if done := len(cluster.Acknowledged()); done != 100 {
			return fmt.Sprintf("%d are acknowledged", done)
		}
		return ""
	})
	if a, b := len(first.log.messages(t)()), len(second.log.messages(t)()); a+b != 100 || a == 0 || b == 0 {
		t.Errorf("one logged %d, the other %d of 100 messages", a, b)
	}
}
