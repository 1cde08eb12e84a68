//go:build !without_pulsar

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

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer/podenv"
)

// watchEvery is how often a consumer checks whether it is still connected.
const watchEvery = time.Second

// Consumer consumes a topic until its context ends.
type Consumer struct {
	Settings Settings
	// Log gets every message, at level Info, and every change of the connection.
	Log *slog.Logger

	// limits is usualLimits if zero.
	limits limits
	// link is the link of the current subscription; nil if there is none.
	link atomic.Pointer[connectionState]
}

// Run subscribes, logs every message, and acknowledges it after that. It retries without limit if Pulsar cannot be reached, refuses, or
// disconnects, or if it cannot log a message. When ctx ends, it takes no more messages, sends the acknowledgements that are due, and closes
// the subscription. So the broker immediately gives other consumers what this consumer received and has not logged. Run returns an error
// only for settings that no retry can fix.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.Settings.check(); err != nil {
		return err
	}
	if c.Settings.Subscription == "" {
		return fmt.Errorf("read %s: it is not set: name the subscription", podenv.Subscription)
	}
	between := &backoffPolicy{next: firstPause}
	for {
		err := c.session(ctx, between)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is no error
		}
		wait := between.Next()
		level := slog.LevelError
		if errors.Is(err, errPartitions) {
			level = slog.LevelInfo // this is not a failure
		}
		c.Log.Log(ctx, level, "not subscribed, trying again", "error", err, "server", c.Settings.Server, "topic", c.Settings.Topic, "subscription", c.Settings.Subscription, "in", wait.Round(time.Millisecond).String())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Ready reports whether the consumer is subscribed and connected.
func (c *Consumer) Ready() bool {
	current := c.link.Load()
	return current != nil && current.isConnected()
}

// Handler answers kubelet's readiness probe.
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

// session subscribes and consumes until ctx ends, or the subscription is lost and not restored.
func (c *Consumer) session(ctx context.Context, between *backoffPolicy) error {
	said := &lastWarning{}
	opened, err := open(c.Settings, said.watch(c.Log), c.within())
	if err != nil {
		return err
	}
	connection := &connectionState{now: time.Now, log: c.Log}
	subscription, partitions, err := c.subscribe(ctx, opened, connection)
	if err != nil {
		runWithTimeout(opened.Close)
		if why := said.take(); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return err
	}
	c.link.Store(connection)
	c.Log.Info("subscribed", "server", c.Settings.Server, "topic", c.Settings.Topic, "subscription", c.Settings.Subscription, "consumer", subscription.Name())

	asking, enough := context.WithCancel(ctx)
	defer enough()
	asked := c.census(asking, opened, connection, partitions)
	err = c.consume(ctx, subscription, connection, asked.changed)
	enough()
	c.link.Store(nil)
	// A message that cannot be logged is delivered again immediately: the pauses must grow, even though the subscription succeeded.
	if !errors.Is(err, errNotLogged) {
		between.Reset()
	}
	// A request of the census may still be in progress. It must end before the client is closed, or it would open the client again.
	if !runWithTimeout(func() { subscription.Close(); <-asked.ended; opened.Close() }) {
		c.Log.Warn("the broker did not answer the request to close the subscription: it delivers the messages to other consumers when it notices", "waited", closeTimeout.String())
	} else if ctx.Err() != nil {
		c.Log.Info("stopped")
	}
	return err
}

// subscribe returns a subscription, and the topic's partitions that it covers. The library's calls take no context; subscribe waits for
// them only until ctx ends.
func (c *Consumer) subscribe(ctx context.Context, opened client.Client, connection *connectionState) (client.Consumer, []string, error) {
	type result struct {
		consumer   client.Consumer
		partitions []string
		err        error
	}
	done := make(chan result, 1)
	go func() {
		partitions, err := opened.TopicPartitions(c.Settings.Topic)
		if err != nil {
			done <- result{nil, nil, err}
			return
		}
		consumer, err := opened.Subscribe(c.options(len(partitions), connection))
		done <- result{consumer, partitions, err}
	}()
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case got := <-done:
		if got.err != nil {
			return nil, nil, fmt.Errorf("subscribe to %s: %w", c.Settings.Topic, got.err)
		}
		return got.consumer, got.partitions, nil
	}
}

// options returns the options of a subscription to a topic with this number of partitions.
func (c *Consumer) options(partitions int, connection *connectionState) client.ConsumerOptions {
	return client.ConsumerOptions{
		Topic: c.Settings.Topic, SubscriptionName: c.Settings.Subscription, Name: c.Settings.Consumer,
		Type: client.Shared, ReceiverQueueSize: queueFor(partitions), AutoDiscoveryPeriod: noDiscovery, BackOffPolicyFunc: connection.policy,
		// With this, a consumer that stops in the middle of a batch does not cause the whole batch to be logged again.
		EnableBatchIndexAcknowledgment: true,
		// The channel has no buffer: the library would keep ten more messages in it.
		MessageChannel: make(chan client.ConsumerMessage),
	}
}

var errLost = errors.New("the connection was lost and not restored")

// consume takes messages one after another, until changed returns an error.
func (c *Consumer) consume(ctx context.Context, subscription client.Consumer, connection *connectionState, changed <-chan error) error {
	patience := c.within().lost
	watch := time.NewTicker(min(watchEvery, patience))
	defer watch.Stop()
	for {
		// If several cases are possible, select takes any of them. A consumer that must stop takes no more messages.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
		case err := <-changed:
			return err
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
				c.Log.Warn("failed to acknowledge message, the broker will deliver it again", "id", received.ID().String(), "error", err)
			}
		}
	}
}

var errNotLogged = errors.New("failed to log a message, which is not acknowledged")

// write logs a message and, unlike a Logger, returns an error if that fails.
func (c *Consumer) write(ctx context.Context, message client.Message) error {
	entry := slog.NewRecord(time.Now(), slog.LevelInfo, "message", 0)
	entry.AddAttrs(describe(message)...)
	if err := c.Log.Handler().Handle(ctx, entry); err != nil {
		return fmt.Errorf("%w: %w", errNotLogged, err)
	}
	return nil
}

// runWithTimeout runs a function that may hang, and reports whether it ended in time.
func runWithTimeout(do func()) bool {
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
