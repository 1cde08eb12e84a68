//go:build !without_pulsar

package pulsar

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
)

// produceTimeout limits one message, including the connection.
const produceTimeout = 30 * time.Second

// ProduceOptions has the messages to send.
type ProduceOptions struct {
	// Message is the payload, Count the number of times to send it.
	Message []byte
	Count   int
	// Sent is called with the identity that the broker gave each message.
	Sent func(id string)
}

// Produce sends a message to the topic. It is for trying a consumer.
func Produce(ctx context.Context, settings Settings, log *slog.Logger, what ProduceOptions) error {
	return produceWithin(ctx, usualLimits(), settings, log, what)
}

func produceWithin(ctx context.Context, within limits, settings Settings, log *slog.Logger, what ProduceOptions) error {
	said := &lastWarning{}
	opened, err := open(settings, said.watch(log), within)
	if err != nil {
		return err
	}
	defer runWithTimeout(opened.Close)
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(what.Count)*produceTimeout, fmt.Errorf("not sent within %s", produceTimeout))
	defer cancel()
	if err := produce(ctx, opened, settings.Topic, what); err != nil {
		if why := said.take(); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return err
	}
	return nil
}

func produce(ctx context.Context, opened client.Client, topic string, what ProduceOptions) error {
	// The library ends this call itself after within.answer.
	producer, err := opened.CreateProducer(client.ProducerOptions{Topic: topic, SendTimeout: produceTimeout, DisableBatching: true})
	if err != nil {
		return fmt.Errorf("produce to %s: %w", topic, err)
	}
	defer runWithTimeout(producer.Close)
	for range what.Count {
		id, err := producer.Send(ctx, &client.ProducerMessage{Payload: what.Message})
		if err != nil {
			return fmt.Errorf("send a message to %s: %w", topic, err)
		}
		what.Sent(id.String())
	}
	return nil
}
