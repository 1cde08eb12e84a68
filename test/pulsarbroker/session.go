//go:build !without_pulsar

package pulsarbroker

import (
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// version is what clients are told: the broker speaks version 19 of the protocol as they do.
	version  = "pulsarbroker"
	protocol = 19
	// writeTimeout bounds what is said to a client that does not listen.
	writeTimeout = 5 * time.Second
)

// session is a client's connection with a broker.
type session struct {
	broker     *Broker
	connection net.Conn
	consumers  map[uint64]*consumer
}

// serve answers until the connection ends. Everything that happens in a cluster happens under its one lock.
func (s *session) serve() {
	c := s.broker.cluster
	defer func() {
		_ = s.connection.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		for id := range s.consumers {
			s.forget(id)
		}
		delete(s.broker.sessions, s)
		c.dispatch()
	}()
	for {
		got, err := read(s.connection)
		if err != nil {
			return
		}
		c.mu.Lock()
		goOn := s.take(got)
		c.mu.Unlock()
		if !goOn {
			return
		}
	}
}

// take does what a command asks for, and reports whether the connection stays open.
func (s *session) take(got command) bool {
	c := s.broker.cluster
	c.heard = append(c.heard, got.kind)
	if c.deaf || c.ignored[got.kind] {
		return true
	}
	if answer, refused := c.refused[got.kind]; refused {
		return s.refuse(got, answer) == nil
	}
	switch got.kind {
	case "CONNECT":
		return s.connect(got)
	case "AUTH_RESPONSE":
		return s.authenticate(got)
	}
	do, known := answers()[got.kind]
	if !known {
		return s.say(failure(got, object{"error": "NotAllowedError", "message": "the stand-in does not know " + got.kind})) == nil
	}
	answer := do(s, got)
	ok := answer == nil || s.say(answer) == nil
	// Only now: who subscribes hears of that before the first message.
	c.dispatch()
	return ok
}

// answers are what commands do, and what is said to them; nil for nothing.
func answers() map[string]func(*session, command) object {
	silent := func(do func(*session, command)) func(*session, command) object {
		return func(s *session, got command) object {
			do(s, got)
			return nil
		}
	}
	return map[string]func(*session, command) object{
		"PING": func(*session, command) object { return object{"type": "PONG", "pong": object{}} },
		"PARTITIONED_METADATA": func(s *session, got command) object {
			return object{"type": "PARTITIONED_METADATA_RESPONSE", "partitionMetadataResponse": object{"requestId": got.number("request_id"), "partitions": s.broker.cluster.partitions, "response": "Success"}}
		},
		"LOOKUP":                            (*session).lookup,
		"SUBSCRIBE":                         (*session).subscribe,
		"FLOW":                              silent((*session).flow),
		"ACK":                               silent((*session).acknowledge),
		"REDELIVER_UNACKNOWLEDGED_MESSAGES": silent((*session).redeliver),
		"CLOSE_CONSUMER": func(s *session, got command) object {
			s.forget(got.number("consumer_id"))
			return success(got)
		},
		"PRODUCER": func(_ *session, got command) object {
			return object{"type": "PRODUCER_SUCCESS", "producerSuccess": object{"requestId": got.number("request_id"), "producerName": "producer", "lastSequenceId": -1}}
		},
		"SEND":           (*session).send,
		"CLOSE_PRODUCER": func(_ *session, got command) object { return success(got) },
	}
}

func success(got command) object {
	return object{"type": "SUCCESS", "success": object{"requestId": got.number("request_id")}}
}

func failure(got command, why object) object {
	request := uint64(0)
	if got.fields.Descriptor().Fields().ByName("request_id") != nil {
		request = got.number("request_id")
	}
	return object{"type": "ERROR", "error": object{"requestId": request, "error": why["error"], "message": why["message"]}}
}

// refuse says no in the way that a command has for that.
func (s *session) refuse(got command, why object) error {
	answer := failure(got, why)
	switch got.kind {
	case "LOOKUP":
		answer = object{"type": "LOOKUP_RESPONSE", "lookupTopicResponse": object{"requestId": got.number("request_id"), "response": "Failed", "error": why["error"], "message": why["message"]}}
	case "PARTITIONED_METADATA":
		answer = object{"type": "PARTITIONED_METADATA_RESPONSE", "partitionMetadataResponse": object{"requestId": got.number("request_id"), "response": "Failed", "error": why["error"], "message": why["message"]}}
	}
	return s.say(answer)
}

func (s *session) connect(got command) bool {
	if !s.admits(got.text("auth_method_name"), got.data("auth_data")) {
		_ = s.say(failure(got, object{"error": "AuthenticationError", "message": "Failed to authenticate"}))
		return false
	}
	return s.say(object{"type": "CONNECTED", "connected": object{"serverVersion": version, "protocolVersion": protocol, "maxMessageSize": maxFrame - 10<<10}}) == nil
}

func (s *session) authenticate(got command) bool {
	response := command{fields: got.value("response").Message()}
	c := s.broker.cluster
	c.heard = append(c.heard, "token "+string(response.data("auth_data")))
	return s.admits(response.text("auth_method_name"), response.data("auth_data"))
}

func (s *session) admits(method string, data []byte) bool {
	token := s.broker.cluster.token
	return token == "" || method == "token" && string(data) == token
}

// lookup names the owner; another broker sends the client there to ask again.
func (s *session) lookup(got command) object {
	c := s.broker.cluster
	answer := object{"requestId": got.number("request_id"), "response": "Connect", "authoritative": true}
	if s.broker != c.owner {
		answer["response"] = "Redirect"
	}
	url := "brokerServiceUrl"
	if c.owner.scheme != "pulsar" {
		url = "brokerServiceUrlTls"
	}
	answer[url] = c.owner.URL()
	return object{"type": "LOOKUP_RESPONSE", "lookupTopicResponse": answer}
}

func (s *session) subscribe(got command) object {
	if s.broker != s.broker.cluster.owner {
		return failure(got, object{"error": "ServiceNotReady", "message": "the topic is served by another broker"})
	}
	id := got.number("consumer_id")
	s.consumers[id] = &consumer{session: s, id: id, name: got.text("consumer_name"), partition: partitionOf(got.text("topic"))}
	return success(got)
}

// partitionOf reads the number at the end of a partition's name, my-topic-partition-3; 0 where there is none.
func partitionOf(topic string) int {
	_, number, _ := strings.Cut(topic, "-partition-")
	partition, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return partition
}

func (s *session) flow(got command) {
	if one := s.consumers[got.number("consumer_id")]; one != nil {
		one.permits += int(got.number("messagePermits"))
	}
}

// acknowledge accepts only messages that this very consumer has. A late acknowledgement counts for nothing. Pulsar is less strict, but no
// client may rely on that.
func (s *session) acknowledge(got command) {
	c, one := s.broker.cluster, s.consumers[got.number("consumer_id")]
	for _, id := range got.entries("message_id") {
		overlooked := c.whole && len(id.left) > 0
		if !overlooked && id.index < len(c.entries) && one != nil && c.entries[id.index].at == one {
			c.entries[id.index].acknowledge(id.left)
		}
	}
}

func (s *session) redeliver(got command) {
	one := s.consumers[got.number("consumer_id")]
	if one == nil {
		return
	}
	named := map[int]bool{}
	for _, id := range got.entries("message_ids") {
		named[id.index] = true
	}
	s.broker.cluster.release(one, func(index int) bool { return len(named) == 0 || named[index] })
}

func (s *session) send(got command) object {
	c := s.broker.cluster
	c.add(got.payload)
	return object{"type": "SEND_RECEIPT", "sendReceipt": object{
		"producerId": got.number("producer_id"), "sequenceId": got.number("sequence_id"), "messageId": object{"ledgerId": 1, "entryId": len(c.entries) - 1},
	}}
}

// forget ends a consumer: what it had not acknowledged is for others.
func (s *session) forget(id uint64) {
	if one := s.consumers[id]; one != nil {
		delete(s.consumers, id)
		s.broker.cluster.release(one, func(int) bool { return true })
	}
}

func (s *session) say(what object) error {
	content, err := frame(what)
	if err != nil {
		return err
	}
	return s.write(content)
}

func (s *session) write(content []byte) error {
	if err := s.connection.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := s.connection.Write(content)
	return err
}
