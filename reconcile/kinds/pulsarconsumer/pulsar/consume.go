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

// Run subscribes, logs every message and acknowledges it when that is done. When Pulsar cannot be reached, refuses, or goes away, or a
// message cannot be logged, it tries again until it can. When ctx ends it takes no more messages, sends the acknowledgements that are due,
// and closes the subscription, so that the broker gives at once to others what this consumer was given and has not logged. It returns an
// error only for settings that no attempt can mend.
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
		level := slog.LevelError
		if errors.Is(err, errPartitions) {
			level = slog.LevelInfo // nothing went wrong
		}
		c.Log.Log(ctx, level, "not subscribed, trying again", "error", err, "server", c.Settings.Server, "topic", c.Settings.Topic, "subscription", c.Settings.Subscription, "in", wait.Round(time.Millisecond).String())
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
	subscription, partitions, err := c.subscribe(ctx, opened, connection)
	if err != nil {
		bounded(opened.Close)
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
	// What cannot be logged comes again at once: that the subscription succeeded is no reason for haste.
	if !errors.Is(err, errNotLogged) {
		between.Reset()
	}
	// A question that is on its way would open what is closed before it has ended.
	if !bounded(func() { subscription.Close(); <-asked.ended; opened.Close() }) {
		c.Log.Warn("the broker did not answer to the end of the subscription: it gives the messages to others when it notices", "waited", closeTimeout.String())
	} else if ctx.Err() != nil {
		c.Log.Info("stopped")
	}
	return err
}

// subscribe returns a subscription, and the topic's partitions that it is made for. It waits for the library, which knows no context, no
// longer than ctx lasts.
func (c *Consumer) subscribe(ctx context.Context, opened client.Client, connection *link) (client.Consumer, []string, error) {
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

// options are those of a subscription to a topic with so many partitions.
func (c *Consumer) options(partitions int, connection *link) client.ConsumerOptions {
	return client.ConsumerOptions{
		Topic: c.Settings.Topic, SubscriptionName: c.Settings.Subscription, Name: c.Settings.Consumer,
		Type: client.Shared, ReceiverQueueSize: queueFor(partitions), AutoDiscoveryPeriod: noDiscovery, BackOffPolicyFunc: connection.policy,
		// A batch is not logged again because its consumer stopped in the middle of it.
		EnableBatchIndexAcknowledgment: true,
		// Without room: the library would keep ten more in it.
		MessageChannel: make(chan client.ConsumerMessage),
	}
}

var errLost = errors.New("the connection was lost and did not come back")

// consume takes messages one after the other, until something comes out of changed.
func (c *Consumer) consume(ctx context.Context, subscription client.Consumer, connection *link, changed <-chan error) error {
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
