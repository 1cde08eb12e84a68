//go:build !without_pulsar

// Package pulsarbroker stands in for Apache Pulsar in tests, where no Pulsar is available. It is a cluster of one topic and one
// subscription. It speaks Pulsar's binary protocol to real clients, frame by frame, and tests can make it misbehave. It keeps what a
// consumer relies on: a message that was not acknowledged is delivered again when its consumer is gone, and to one consumer at a time. It
// keeps nothing on disk, and implements only what the tests need: no subscription type other than Shared.
package pulsarbroker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Cluster is brokers that share a topic.
type Cluster struct {
	mu      sync.Mutex
	entries []*entry
	brokers []*Broker
	// owner serves the topic; a broker that is asked and is not the owner names it.
	owner *Broker
	// partitions is how many the topic has; 0 for a topic that is not partitioned.
	partitions int
	// whole says that of batches nothing but the whole can be acknowledged.
	whole bool
	// token is what a client has to bring; empty for nothing.
	token string
	// refused are the commands that are answered with an error.
	refused map[string]object
	// ignored are the commands that are read and not carried out; deaf brokers ignore all.
	ignored map[string]bool
	deaf    bool
	// heard is every command that came, "SUBSCRIBE" and so on, and every token that was sent in answer to Challenge, "token …".
	heard []string
}

// Broker is one broker of a cluster.
type Broker struct {
	cluster  *Cluster
	listener net.Listener
	scheme   string
	sessions map[*session]bool
}

// New makes a cluster without brokers.
func New() *Cluster {
	return &Cluster{refused: map[string]object{}, ignored: map[string]bool{}}
}

// Serve lets a further broker serve a listener, over TLS if there is a configuration for that. The first one owns the topic. It ends with
// Stop.
func (c *Cluster) Serve(listener net.Listener, secure *tls.Config) *Broker {
	b := &Broker{cluster: c, listener: listener, scheme: "pulsar", sessions: map[*session]bool{}}
	if secure != nil {
		b.listener, b.scheme = tls.NewListener(listener, secure), "pulsar+ssl"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.brokers = append(c.brokers, b)
	if c.owner == nil {
		c.owner = b
	}
	go b.accept()
	return b
}

// URL is the broker's service URL.
func (b *Broker) URL() string {
	return b.scheme + "://" + b.listener.Addr().String()
}

func (b *Broker) accept() {
	for {
		connection, err := b.listener.Accept()
		if err != nil {
			return
		}
		one := &session{broker: b, connection: connection, consumers: map[uint64]*consumer{}}
		b.cluster.mu.Lock()
		b.sessions[one] = true
		b.cluster.mu.Unlock()
		go one.serve()
	}
}

// Cut breaks all connections with the broker, without a word.
func (b *Broker) Cut() {
	b.cluster.mu.Lock()
	defer b.cluster.mu.Unlock()
	for one := range b.sessions {
		_ = one.connection.Close()
	}
}

// Stop ends the broker: its address is free when it returns.
func (b *Broker) Stop() error {
	err := b.listener.Close()
	b.Cut()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Partition divides the topic, or gives one that is divided further partitions: what is in it stays in the partition that it is in.
func (c *Cluster) Partition(partitions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partitions = partitions
}

// AcknowledgeWholeBatches makes the brokers overlook acknowledgements of single messages of a batch, as those without Pulsar's setting
// acknowledgmentAtBatchIndexLevelEnabled do.
func (c *Cluster) AcknowledgeWholeBatches() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.whole = true
}

// Publish adds a message to the topic, or several as one batch; of its partitions each gets one in turn.
func (c *Cluster) Publish(payloads ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := make([][]byte, 0, len(payloads))
	for _, payload := range payloads {
		batch = append(batch, []byte(payload))
	}
	c.add(batch...)
	c.dispatch()
}

// Move makes another broker the owner of the topic, as load balancing does: the consumers are told that they are closed.
func (c *Cluster) Move(to *Broker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner = to
	c.eachConsumer(func(one *consumer) {
		one.session.forget(one.id)
		_ = one.session.say(object{"type": "CLOSE_CONSUMER", "closeConsumer": object{"consumerId": one.id, "requestId": 0}})
	})
	c.dispatch()
}

// Require makes the brokers ask for a token; what is connected stays.
func (c *Cluster) Require(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
}

// Challenge asks every connected client for its token again, as a broker does when a token expires.
func (c *Cluster) Challenge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eachSession(func(one *session) {
		_ = one.say(object{"type": "AUTH_CHALLENGE", "authChallenge": object{"serverVersion": version, "challenge": object{"auth_method_name": "token"}}})
	})
}

// Refuse answers commands of a kind ("SUBSCRIBE", "LOOKUP", …) with an error of the protocol ("ConsumerBusy", "TopicNotFound", …) until
// Allow.
func (c *Cluster) Refuse(kind, code, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[kind] = object{"error": code, "message": message}
}

// Ignore loses commands of a kind until Allow: they are heard, and nothing comes of them.
func (c *Cluster) Ignore(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ignored[kind] = true
}

// Allow ends what Refuse or Ignore began.
func (c *Cluster) Allow(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.refused, kind)
	delete(c.ignored, kind)
}

// Deafen makes the brokers answer nothing, or answer again: a hanging broker.
func (c *Cluster) Deafen(deaf bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = deaf
	c.dispatch()
}

// Acknowledged returns the payloads that were acknowledged, in the order of the topic.
func (c *Cluster) Acknowledged() []string {
	return c.payloads(func(one *message) bool { return one.acknowledged })
}

// Redelivered returns the payloads that were delivered more than once.
func (c *Cluster) Redelivered() []string {
	return c.payloads(func(one *message) bool { return one.deliveries > 1 })
}

// Published returns all payloads.
func (c *Cluster) Published() []string {
	return c.payloads(func(*message) bool { return true })
}

// Consumers returns the names of the consumers that are subscribed.
func (c *Cluster) Consumers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := []string{}
	c.eachConsumer(func(one *consumer) { names = append(names, one.name) })
	slices.Sort(names)
	return names
}

// Permits returns how many messages the consumers have asked for and not got yet, those of all partitions together.
func (c *Cluster) Permits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	c.eachConsumer(func(one *consumer) { sum += one.permits })
	return sum
}

// Heard returns the commands that came, oldest first.
func (c *Cluster) Heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.heard)
}

func (c *Cluster) payloads(which func(*message) bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := []string{}
	for _, one := range c.entries {
		for _, each := range one.messages {
			if which(each) {
				found = append(found, string(each.payload))
			}
		}
	}
	return found
}

func (c *Cluster) eachSession(do func(*session)) {
	for _, broker := range c.brokers {
		for one := range broker.sessions {
			do(one)
		}
	}
}

func (c *Cluster) eachConsumer(do func(*consumer)) {
	c.eachSession(func(one *session) {
		for _, each := range one.consumers {
			do(each)
		}
	})
}

// dispatch gives each entry that no consumer has to a consumer that asked for more: the one that was given the fewest entries.
func (c *Cluster) dispatch() {
	if c.deaf {
		return
	}
	for index, one := range c.entries {
		if one.acknowledged() || one.at != nil {
			continue
		}
		var taker *consumer
		c.eachConsumer(func(each *consumer) {
			if each.partition == one.partition && each.permits > 0 && (taker == nil || each.given < taker.given) {
				taker = each
			}
		})
		if taker != nil {
			taker.give(index, one)
		}
	}
}

// release takes back what a consumer had and did not acknowledge.
func (c *Cluster) release(gone *consumer, which func(index int) bool) {
	for index, one := range c.entries {
		if one.at == gone && which(index) {
			one.at = nil
		}
	}
}

// consumer is a subscribed consumer.
type consumer struct {
	session        *session
	id             uint64
	name           string
	partition      int
	permits, given int
}

func (t *consumer) give(index int, one *entry) {
	t.given++
	one.at = t
	one.deliveries++
	for _, each := range one.messages {
		if !each.acknowledged {
			t.permits--
			each.deliveries++
		}
	}
	command := object{"type": "MESSAGE", "message": object{
		"consumerId": t.id, "messageId": object{"ledgerId": 1, "entryId": index}, "redeliveryCount": one.deliveries - 1, "ackSet": one.missing(),
	}}
	metadata := object{"producerName": "test", "sequenceId": index, "publishTime": time.Now().UnixMilli()}
	content, err := one.payload(metadata)
	if err == nil {
		content, err = payloadFrame(command, metadata, content)
	}
	if err != nil {
		panic(fmt.Sprintf("give a message: %v", err)) // a mistake in this package
	}
	_ = t.session.write(content)
}
