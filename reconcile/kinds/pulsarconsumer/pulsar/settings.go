//go:build !without_pulsar

// Package pulsar runs in the Pods of a PulsarConsumer: a consumer that logs each message and acknowledges it. It also has a producer, to
// try the consumer. Both are separate programs, so that the operator does not link the client library (docs/adr).
package pulsar

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer/podenv"
)

// Settings has the address of Pulsar, and how to authenticate.
type Settings struct {
	// Server is the service URL, pulsar://host:6650 or pulsar+ssl://host:6651.
	Server string
	// Topic is the topic to consume or to produce to.
	Topic string
	// Subscription is the name of the subscription; producers ignore it.
	Subscription string
	// Consumer is the name to subscribe under; if it is empty, the library chooses one.
	Consumer string
	// Credentials is the folder with the files token, ca.crt, tls.crt and tls.key, each if needed; empty if Pulsar needs no credentials.
	Credentials string
}

// FromEnvironment reads settings from the variables that a PulsarConsumer sets in its Pods.
func FromEnvironment(environment func(name string) string) Settings {
	return Settings{
		Server: environment(podenv.Server), Topic: environment(podenv.Topic), Subscription: environment(podenv.Subscription),
		Consumer: environment(podenv.Consumer), Credentials: environment(podenv.Credentials),
	}
}

// schemeTLS is the scheme of a service URL with TLS.
const schemeTLS = "pulsar+ssl"

// check returns an error if a setting that every connection needs is missing or wrong.
func (s Settings) check() error {
	server, err := url.Parse(s.Server)
	if s.Server == "" {
		err = errors.New("it is not set")
	} else if err == nil && server.Scheme != "pulsar" && server.Scheme != schemeTLS {
		err = errors.New("it must begin with pulsar:// or pulsar+ssl://")
	}
	if err != nil {
		return fmt.Errorf("read %s=%q: %w: use pulsar://host:6650", podenv.Server, s.Server, err)
	}
	if s.Topic == "" {
		return fmt.Errorf("read %s: it is not set: name the topic", podenv.Topic)
	}
	return nil
}

// The time limits of requests to Pulsar.
const (
	// dialTimeout limits a connection attempt.
	dialTimeout = 5 * time.Second
	// closeTimeout limits an orderly end. It is less than podenv.StopSeconds.
	closeTimeout = 10 * time.Second
	// firstPause and lastPause are the shortest and the longest pause between attempts; each pause is twice the one before.
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// limits has the times that tests shorten.
type limits struct {
	// answer limits a lookup, a subscription and any other request to a broker, retries included.
	answer time.Duration
	// alive is how often the client pings a broker. After twice that time without an answer, the client closes the connection.
	alive time.Duration
	// lost is how long the consumer leaves a lost connection to the library. In some cases the library gives up without a report (a topic
	// that is gone), and it keeps its first certificates. After this time, the consumer starts a new session.
	lost time.Duration
	// ask is how often the consumer asks a broker for the topic's partitions. It must not be 0.
	ask time.Duration
}

func usualLimits() limits {
	return limits{answer: 10 * time.Second, alive: 15 * time.Second, lost: time.Minute, ask: time.Minute}
}
