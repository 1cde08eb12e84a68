package pulsar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"

	"github.com/mysql-operator/mysql-operator/reconcile/pulsarconsumer/podenv"
)

// receiverQueue is how many messages are fetched ahead, those of all partitions together. They may have 5 MiB each (Pulsar's default of
// maxMessageSize): 100 MiB of what podenv.Memory gives.
const receiverQueue = 20

// queueFor is how many messages are fetched ahead of each partition: at least one, without which nothing would come. The library can also scale
// its queues by the memory in use; but it counts the messages of a batch several times and gives them back once, and a queue that has grown
// with small messages holds as many large ones.
func queueFor(partitions int) int {
	return max(1, receiverQueue/max(1, partitions))
}

// watchEvery is how often a consumer looks whether it is still connected.
const watchEvery = time.Second

// Consumer consumes a topic until it is told to stop.
type Consumer struct {
	Settings Settings
	// Log gets every message, at level Info, and what becomes of the connection.
	Log *slog.Logger

	// limits are the usual ones if they are zero.
	limits limits
	// link is that of the subscription there is; nil if there is none.
	link atomic.Pointer[link]
}

// Run subscribes, logs every message and acknowledges it when that is done. When Pulsar cannot be reached, refuses, or goes away, or a message
// cannot be logged, it tries again until it can. When ctx ends it takes no more messages, sends the acknowledgements that are due, and closes the subscription, so that the
// broker gives at once to others what this consumer was given and has not logged. It returns an error only for settings that no attempt can mend.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.Settings.check(); err != nil {
		return err
	}
	if c.Settings.Subscription == "" {
		return fmt.Errorf("read %s: it is not set: name the subscription", podenv.Subscription)
	}
	between := &pause{next: firstPause}
	for {
		err := c.session(ctx, between)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // to be told to stop is no error
		}
		wait := between.Next()
		c.Log.Error("not subscribed, trying again", "error", err, "server", c.Settings.Server, "topic", c.Settings.Topic, "subscription", c.Settings.Subscription, "in", wait.Round(time.Millisecond).String())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Ready says whether the consumer is subscribed and connected.
func (c *Consumer) Ready() bool {
	current := c.link.Load()
	return current != nil && current.whole()
}

// Handler answers the kubelet's question whether the consumer is ready.
func (c *Consumer) Handler() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+podenv.ReadyPath, func(answer http.ResponseWriter, _ *http.Request) {
		if !c.Ready() {
			http.Error(answer, "not subscribed", http.StatusServiceUnavailable)
			return
		}
		_, _ = answer.Write([]byte("ok\n"))
	})
	return routes
}

func (c *Consumer) within() limits {
	return cmp.Or(c.limits, usualLimits())
}

// session subscribes and consumes until ctx ends, or the subscription is lost for good.
func (c *Consumer) session(ctx context.Context, between *pause) error {
	said := &trouble{}
	opened, err := open(c.Settings, said.watch(c.Log), c.within())
	if err != nil {
		return err
	}
	connection := &link{now: time.Now, log: c.Log}
	subscription, err := c.subscribe(ctx, opened, connection)
	if err != nil {
		bounded(opened.Close)
		if why := said.take(); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return err
	}
	c.link.Store(connection)
	c.Log.Info("subscribed", "server", c.Settings.Server, "topic", c.Settings.Topic, "subscription", c.Settings.Subscription, "consumer", subscription.Name())

	err = c.consume(ctx, subscription, connection)
	c.link.Store(nil)
	// What cannot be logged comes again at once: that the subscription succeeded is no reason for haste.
	if !errors.Is(err, errNotLogged) {
		between.Reset()
	}
	if !bounded(func() { subscription.Close(); opened.Close() }) {
		c.Log.Warn("the broker did not answer to the end of the subscription: it gives the messages to others when it notices", "waited", closeTimeout.String())
	} else if ctx.Err() != nil {
		c.Log.Info("stopped")
	}
	return err
}

// subscribe waits for the library, which knows no context, no longer than ctx lasts.
func (c *Consumer) subscribe(ctx context.Context, opened client.Client, connection *link) (client.Consumer, error) {
	type result struct {
		consumer client.Consumer
		err      error
	}
	done := make(chan result, 1)
	go func() {
		partitions, err := opened.TopicPartitions(c.Settings.Topic)
		if err != nil {
			done <- result{nil, err}
			return
		}
		consumer, err := opened.Subscribe(client.ConsumerOptions{
			Topic: c.Settings.Topic, SubscriptionName: c.Settings.Subscription, Name: c.Settings.Consumer,
			Type: client.Shared, ReceiverQueueSize: queueFor(len(partitions)), BackOffPolicyFunc: connection.policy,
			// A batch is not logged again because its consumer stopped in the middle of it.
			EnableBatchIndexAcknowledgment: true,
			// Without room: the library would keep ten more in it.
			MessageChannel: make(chan client.ConsumerMessage),
		})
		done <- result{consumer, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case got := <-done:
		if got.err != nil {
			return nil, fmt.Errorf("subscribe to %s: %w", c.Settings.Topic, got.err)
		}
		return got.consumer, nil
	}
}

var errLost = errors.New("the connection was lost and did not come back")

// consume takes messages one after the other.
func (c *Consumer) consume(ctx context.Context, subscription client.Consumer, connection *link) error {
	patience := c.within().lost
	watch := time.NewTicker(min(watchEvery, patience))
	defer watch.Stop()
	for {
		// Of several things that are possible select takes any: a consumer that is to stop takes no more.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
		case <-watch.C:
			if connection.lostFor() > patience {
				return errLost
			}
		case received, open := <-subscription.Chan():
			if !open {
				return errLost
			}
			if err := c.write(ctx, received.Message); err != nil {
				return err
			}
			if err := subscription.Ack(received.Message); err != nil {
				c.Log.Warn("message not acknowledged, it will be delivered again", "id", received.ID().String(), "error", err)
			}
		}
	}
}

var errNotLogged = errors.New("a message could not be logged, and is not acknowledged")

// write logs a message, and unlike a Logger says whether that has come about.
func (c *Consumer) write(ctx context.Context, message client.Message) error {
	entry := slog.NewRecord(time.Now(), slog.LevelInfo, "message", 0)
	entry.AddAttrs(describe(message)...)
	if err := c.Log.Handler().Handle(ctx, entry); err != nil {
		return fmt.Errorf("%w: %w", errNotLogged, err)
	}
	return nil
}

// bounded does something that may hang, and says whether it came to its end in time.
func bounded(do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return true
	case <-time.After(closeTimeout):
		return false
	}
}
