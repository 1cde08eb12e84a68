//go:build !without_pulsar

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// receiverQueue is how many messages are fetched ahead, those of all partitions together. They may have 5 MiB each (Pulsar's default of
// maxMessageSize): 100 MiB of what podenv.Memory gives.
const receiverQueue = 20

// queueFor is how many messages are fetched ahead of each partition: at least one, without which nothing would come. The library can also
// scale its queues by the memory in use; but it counts the messages of a batch several times and gives them back once, and a queue that has
// grown with small messages holds as many large ones.
func queueFor(partitions int) int {
	return max(1, receiverQueue/max(1, partitions))
}

// noDiscovery is so long that the library does not look for further partitions by itself (0 would be every minute): it closes all that it
// has when it cannot subscribe to a new one, says nothing of that, and never tries again; and it gives new ones the queue that was meant
// for fewer.
const noDiscovery = 10 * 365 * 24 * time.Hour

var errPartitions = errors.New("the topic has other partitions than when it was subscribed to")

// census asks again and again which partitions the topic has, beside the reception of messages: an answer may take its time.
type census struct {
	// changed gets one error, errPartitions, when they are others than at first.
	changed chan error
	// ended is closed when nothing is asked any more.
	ended chan struct{}
}

// census begins to ask, which goes on until ctx ends or the partitions are others than known. That a question fails says nothing of the
// subscription; and while the connection is lost, none is asked.
func (c *Consumer) census(ctx context.Context, broker asked, connection *link, known []string) census {
	begun := census{changed: make(chan error, 1), ended: make(chan struct{})}
	go func() {
		defer close(begun.ended)
		often := time.NewTicker(c.within().ask)
		defer often.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-often.C:
			}
			if !connection.whole() {
				continue
			}
			now, err := broker.TopicPartitions(c.Settings.Topic)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				c.Log.Warn("it is not known whether the topic has further partitions, asking again", "error", err, "topic", c.Settings.Topic, "in", c.within().ask.String())
			case !slices.Equal(now, known):
				begun.changed <- fmt.Errorf("%w: %d instead of %d", errPartitions, len(now), len(known))
				return
			}
		}
	}()
	return begun
}

// asked is what of the library's client tells of a topic. A topic that is not partitioned is its own only partition.
type asked interface {
	TopicPartitions(topic string) ([]string, error)
}
