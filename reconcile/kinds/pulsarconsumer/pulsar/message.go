//go:build !without_pulsar

package pulsar

import (
	"encoding/base64"
	"log/slog"
	"time"
	"unicode/utf8"

	client "github.com/apache/pulsar-client-go/pulsar"
)

// maxLogged is how many bytes of a payload the log has: container runtimes cut lines at 16 KiB.
const maxLogged = 8 << 10

// describe returns a message as log attributes. The payload is text, or base64 if it is not text.
func describe(message client.Message) []slog.Attr {
	described := append(payload(message.Payload()),
		slog.String("id", message.ID().String()),
		slog.String("topic", message.Topic()),
		slog.String("published", message.PublishTime().UTC().Format(time.RFC3339Nano)))
	if key := message.Key(); key != "" {
		described = append(described, slog.String("key", key))
	}
	if properties := message.Properties(); len(properties) > 0 {
		described = append(described, slog.Any("properties", properties))
	}
	if again := message.RedeliveryCount(); again > 0 {
		described = append(described, slog.Uint64("redelivered", uint64(again)))
	}
	return described
}

func payload(content []byte) []slog.Attr {
	size := len(content)
	if size <= maxLogged {
		return []slog.Attr{text(content)}
	}
	content = content[:maxLogged]
	// The cut must not be within a character.
	for cut := range utf8.UTFMax {
		if last := content[:maxLogged-cut]; utf8.Valid(last) {
			content = last
			break
		}
	}
	return []slog.Attr{text(content), slog.Int("size", size), slog.Bool("cut", true)}
}

func text(content []byte) slog.Attr {
	if utf8.Valid(content) {
		return slog.String("payload", string(content))
	}
	return slog.String("payloadBase64", base64.StdEncoding.EncodeToString(content))
}
