//go:build !without_pulsar

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// receiverQueue is how many messages the consumer fetches ahead, for all partitions together. Each may have 5 MiB (Pulsar's default of
// maxMessageSize). That is 100 MiB of podenv.Memory.
const receiverQueue = 20

// queueFor returns how many messages the consumer fetches ahead from each partition: at least one, because without it none would arrive.
// The library can also scale its queues by the memory in use. But it counts the messages of a batch several times and releases them once.
// And a queue that grew with small messages then holds as many large ones.
func queueFor(partitions int) int {
	return max(1, receiverQueue/max(1, partitions))
}

// noDiscovery is so long that the library does not look for further partitions itself (0 would be every minute). If the library cannot
// subscribe to a new partition, it closes all its consumers without a report, and never retries. It also gives new partitions the queue
// that was meant for fewer.
const noDiscovery = 10 * 365 * 24 * time.Hour

var errPartitions = errors.New("the topic has other partitions than at the time of the subscription")

// partitionWatch asks for the topic's partitions at intervals, in parallel to the reception of messages: an answer may take time.
type partitionWatch struct {
	// changed gets one error, errPartitions, when the partitions differ from the first ones.
	changed chan error
	// ended is closed when the census sends no more requests.
	ended chan struct{}
}

// census starts to ask. It continues until ctx ends or the partitions differ from known. A failed request does not affect the subscription.
// While the connection is lost, it sends no request.
func (c *Consumer) census(ctx context.Context, broker partitionLister, connection *connectionState, known []string) partitionWatch {
	begun := partitionWatch{changed: make(chan error, 1), ended: make(chan struct{})}
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
			if !connection.isConnected() {
				continue
			}
			now, err := broker.TopicPartitions(c.Settings.Topic)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				c.Log.Warn("failed to read the topic's partitions, trying again", "error", err, "topic", c.Settings.Topic, "in", c.within().ask.String())
			case !slices.Equal(now, known):
				begun.changed <- fmt.Errorf("%w: %d instead of %d", errPartitions, len(now), len(known))
				return
			}
		}
	}()
	return begun
}

// partitionLister is the part of the library's client that returns a topic's partitions. A topic without partitions is its own only
// partition.
type partitionLister interface {
	TopicPartitions(topic string) ([]string, error)
}
