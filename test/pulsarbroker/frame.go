//go:build !without_pulsar

package pulsarbroker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	// The library brings the protocol's messages: the package that has them is internal to it, but protobuf's registry is not.
	_ "github.com/apache/pulsar-client-go/pulsar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// object is a message of the protocol as JSON has it: {"type": "PONG", "pong": {}}.
type object map[string]any

// maxFrame is what a broker takes at most, in bytes (Pulsar documentation, "Binary protocol": 5 MiB and some room).
const maxFrame = 5<<20 + 10<<10

var errFrame = errors.New("this is no frame of Pulsar's binary protocol")

// newMessage makes an empty message of the protocol by its name.
func newMessage(name string) (proto.Message, error) {
	found, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("pulsar.proto." + name))
	if err != nil {
		return nil, fmt.Errorf("find %s of the protocol: %w", name, err)
	}
	return found.New().Interface(), nil
}

// encode turns an object into the bytes of a message.
func encode(name string, content object) ([]byte, error) {
	message, err := newMessage(name)
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if err := protojson.Unmarshal(document, message); err != nil {
		return nil, fmt.Errorf("make a %s of %s: %w", name, document, err)
	}
	return proto.Marshal(message)
}

// frame is a command without payload: total size, size of the command, command ("Binary protocol", "Framing").
func frame(command object) ([]byte, error) {
	encoded, err := encode("BaseCommand", command)
	if err != nil {
		return nil, err
	}
	content := binary.BigEndian.AppendUint32(nil, uint32(len(encoded)+4))
	content = binary.BigEndian.AppendUint32(content, uint32(len(encoded)))
	return append(content, encoded...), nil
}

// magic begins the checksum of a payload.
const magic = 0x0e01

// payloadFrame is a command with a message: after the command the magic number, the CRC-32C of what follows, size of the metadata,
// metadata, payload.
func payloadFrame(command, metadata object, payload []byte) ([]byte, error) {
	encoded, err := encode("BaseCommand", command)
	if err != nil {
		return nil, err
	}
	described, err := encode("MessageMetadata", metadata)
	if err != nil {
		return nil, err
	}
	body := binary.BigEndian.AppendUint32(nil, uint32(len(described)))
	body = append(append(body, described...), payload...)

	content := binary.BigEndian.AppendUint32(nil, uint32(4+len(encoded)+2+4+len(body)))
	content = binary.BigEndian.AppendUint32(content, uint32(len(encoded)))
	content = append(content, encoded...)
	content = binary.BigEndian.AppendUint16(content, magic)
	content = binary.BigEndian.AppendUint32(content, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	return append(content, body...), nil
}

// command is what a client sent: its name in the protocol, its fields, and the payload of a SEND.
type command struct {
	kind    string
	fields  protoreflect.Message
	payload []byte
}

// number, text and data read a field by its name in the protocol.
func (c command) number(name string) uint64 { return c.value(name).Uint() }
func (c command) text(name string) string   { return c.value(name).String() }
func (c command) data(name string) []byte   { return c.value(name).Bytes() }

func (c command) value(name string) protoreflect.Value {
	return c.fields.Get(c.fields.Descriptor().Fields().ByName(protoreflect.Name(name)))
}

// identity is what a MessageIdData names: an entry, and of a batch the bits of the messages that are not meant.
type identity struct {
	index int
	left  []int64
}

// entries reads a list of MessageIdData.
func (c command) entries(name string) []identity {
	list := c.value(name).List()
	found := make([]identity, 0, list.Len())
	for i := range list.Len() {
		id := command{fields: list.Get(i).Message()}
		one := identity{index: int(id.number("entryId"))}
		bits := id.value("ack_set").List()
		for word := range bits.Len() {
			one.left = append(one.left, bits.Get(word).Int())
		}
		found = append(found, one)
	}
	return found
}

// read reads a frame.
func read(from io.Reader) (command, error) {
	var sizes [8]byte
	if _, err := io.ReadFull(from, sizes[:]); err != nil {
		return command{}, err
	}
	total, size := binary.BigEndian.Uint32(sizes[:4]), binary.BigEndian.Uint32(sizes[4:])
	if total > maxFrame || size > total-4 {
		return command{}, fmt.Errorf("read a frame of %d bytes with a command of %d: %w", total, size, errFrame)
	}
	content := make([]byte, total-4)
	if _, err := io.ReadFull(from, content); err != nil {
		return command{}, err
	}
	base, err := newMessage("BaseCommand")
	if err != nil {
		return command{}, err
	}
	if err := proto.Unmarshal(content[:size], base); err != nil {
		return command{}, fmt.Errorf("read a command: %w", err)
	}
	got, err := parse(base.ProtoReflect())
	if err == nil && len(content) > int(size) {
		got.payload, err = payloadOf(content[size:])
	}
	return got, err
}

// parse finds the one field that holds a command's fields.
func parse(base protoreflect.Message) (command, error) {
	kind := base.Descriptor().Fields().ByName("type")
	got := command{kind: string(kind.Enum().Values().ByNumber(base.Get(kind).Enum()).Name())}
	base.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() != nil {
			got.fields = value.Message()
		}
		return true
	})
	if got.fields == nil {
		return got, fmt.Errorf("read a %s: it says nothing more: %w", got.kind, errFrame)
	}
	return got, nil
}

// payloadOf checks the checksum and returns what follows the metadata.
func payloadOf(content []byte) ([]byte, error) {
	if len(content) < 10 || binary.BigEndian.Uint16(content) != magic {
		return nil, fmt.Errorf("read a payload: %w", errFrame)
	}
	sum, body := binary.BigEndian.Uint32(content[2:]), content[6:]
	if sum != crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) {
		return nil, fmt.Errorf("read a payload: its checksum is wrong: %w", errFrame)
	}
	described := binary.BigEndian.Uint32(body)
	if uint64(len(body)) < 4+uint64(described) {
		return nil, fmt.Errorf("read a payload: its metadata has no end: %w", errFrame)
	}
	return body[4+described:], nil
}
