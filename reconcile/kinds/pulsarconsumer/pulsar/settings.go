//go:build !without_pulsar

// Package pulsar is what runs in the Pods of a PulsarConsumer: a consumer that logs each message and acknowledges it. And it is a producer,
// for trying that. Both are programs of their own, so that the operator does not carry the client library (docs/adr).
package pulsar

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer/podenv"
)

// Settings say where Pulsar is, and who one is to it.
type Settings struct {
	// Server is the service URL, pulsar://host:6650 or pulsar+ssl://host:6651.
	Server string
	// Topic is the topic to consume or to produce to.
	Topic string
	// Subscription is the name of the subscription; of no meaning for a producer.
	Subscription string
	// Consumer is the name to subscribe under; empty makes the library choose one.
	Consumer string
	// Credentials is the folder with the files token, ca.crt, tls.crt and tls.key, each if needed; empty means that Pulsar asks for nothing.
	Credentials string
}

// FromEnvironment reads settings from the variables that a PulsarConsumer gives its Pods.
func FromEnvironment(environment func(name string) string) Settings {
	return Settings{
		Server: environment(podenv.Server), Topic: environment(podenv.Topic), Subscription: environment(podenv.Subscription),
		Consumer: environment(podenv.Consumer), Credentials: environment(podenv.Credentials),
	}
}

// schemeTLS begins the service URL where TLS is spoken.
const schemeTLS = "pulsar+ssl"

// check tells what is missing for speaking to Pulsar at all.
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

// The times that bound what is done with Pulsar.
const (
	// dialTimeout bounds a connection.
	dialTimeout = 5 * time.Second
	// closeTimeout bounds an orderly end: less than podenv.StopSeconds.
	closeTimeout = 10 * time.Second
	// firstPause and lastPause are between attempts, doubled each time.
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// limits are the times that tests shorten.
type limits struct {
	// answer bounds a lookup, a subscription and whatever else is asked of a broker, repetitions included.
	answer time.Duration
	// alive is how often a broker is asked for a sign of life; twice that without one, and the connection is given up.
	alive time.Duration
	// lost is how long a lost connection is left to the library, which gives up silently in some cases (a topic that is gone) and keeps the
	// certificates that it began with. Then all begins anew.
	lost time.Duration
	// ask is how often a broker is asked which partitions the topic has. It must not be 0.
	ask time.Duration
}

func usualLimits() limits {
	return limits{answer: 10 * time.Second, alive: 15 * time.Second, lost: time.Minute, ask: time.Minute}
}
