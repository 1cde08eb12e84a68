//go:build !without_pulsar

package pulsarbroker

import "encoding/binary"

// entry is what the topic is made of: a message, or a batch of messages.
type entry struct {
	messages []*message
	// partition has it.
	partition int
	// at is the consumer that has the entry; nil if no consumer has it.
	at         *consumer
	deliveries int
}

// message is one of an entry. One that was acknowledged is not delivered again with the others of its batch.
type message struct {
	payload      []byte
	acknowledged bool
	deliveries   int
}

func (c *Cluster) add(payloads ...[]byte) {
	one := &entry{partition: len(c.entries) % max(c.partitions, 1)}
	for _, payload := range payloads {
		one.messages = append(one.messages, &message{payload: payload})
	}
	c.entries = append(c.entries, one)
}

func (e *entry) isBatch() bool { return len(e.messages) > 1 }

func (e *entry) acknowledged() bool {
	for _, each := range e.messages {
		if !each.acknowledged {
			return false
		}
	}
	return true
}

// acknowledge takes those messages as done whose bit is not set: all, if there are no bits (PulsarApi.proto, MessageIdData.ack_set).
func (e *entry) acknowledge(left []int64) {
	for index, each := range e.messages {
		if word := index / 64; word >= len(left) || uint64(left[word])>>(index%64)&1 == 0 {
			each.acknowledged = true
		}
	}
}

// missing are the bits of the messages that were not acknowledged; none if none was.
func (e *entry) missing() []int64 {
	bits, partly := make([]uint64, (len(e.messages)+63)/64), false
	for index, each := range e.messages {
		if each.acknowledged {
			partly = true
			continue
		}
		bits[index/64] |= 1 << (index % 64)
	}
	if !partly {
		return nil
	}
	left := make([]int64, 0, len(bits))
	for _, word := range bits {
		left = append(left, int64(word))
	}
	return left
}

// payload is the entry's payload as it goes over the wire; of a batch, each message comes after its size and its metadata ("Binary
// protocol", "Batch messages").
func (e *entry) payload(metadata object) ([]byte, error) {
	if !e.isBatch() {
		return e.messages[0].payload, nil
	}
	metadata["numMessagesInBatch"] = len(e.messages)
	content := []byte{}
	for _, each := range e.messages {
		described, err := encode("SingleMessageMetadata", object{"payloadSize": len(each.payload)})
		if err != nil {
			return nil, err
		}
		content = binary.BigEndian.AppendUint32(content, uint32(len(described)))
		content = append(append(content, described...), each.payload...)
	}
	return content, nil
}
