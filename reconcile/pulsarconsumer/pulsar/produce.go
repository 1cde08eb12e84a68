package pulsar

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
)

// produceTimeout bounds one message, the connection included.
const produceTimeout = 30 * time.Second

// Produce sends a message to the topic so many times, and calls sent with the identity that the broker gave each. It is for trying a consumer.
func Produce(ctx context.Context, settings Settings, log *slog.Logger, message []byte, count int, sent func(id string)) error {
	said := &trouble{}
	opened, err := open(settings, said.watch(log), keepAlive)
	if err != nil {
		return err
	}
	defer bounded(opened.Close)
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(count)*produceTimeout, fmt.Errorf("not sent within %s", produceTimeout))
	defer cancel()
	if err := produce(ctx, opened, settings, message, count, sent); err != nil {
		if why := said.take(); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return err
	}
	return nil
}

func produce(ctx context.Context, opened client.Client, settings Settings, message []byte, count int, sent func(id string)) error {
	// The library ends this by itself after operationTimeout, or a few times that.
	producer, err := opened.CreateProducer(client.ProducerOptions{Topic: settings.Topic, SendTimeout: produceTimeout, DisableBatching: true})
	if err != nil {
		return fmt.Errorf("produce to %s: %w", settings.Topic, err)
	}
	defer bounded(producer.Close)
	for range count {
		id, err := producer.Send(ctx, &client.ProducerMessage{Payload: message})
		if err != nil {
			return fmt.Errorf("send a message to %s: %w", settings.Topic, err)
		}
		sent(id.String())
	}
	return nil
}
