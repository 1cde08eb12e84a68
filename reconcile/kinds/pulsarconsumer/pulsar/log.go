//go:build !without_pulsar

package pulsar

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	library "github.com/apache/pulsar-client-go/pulsar/log"
)

// libraryLog writes the library's log into the consumer's log at a lower level: the library's messages about itself are for debugging.
func libraryLog(log *slog.Logger) library.Logger {
	return library.NewLoggerWithSlog(slog.New(quietHandler{log.Handler()}))
}

// quietHandler lowers the level by one, except for warnings and errors. The library's errors are mostly attempts that it repeats.
type quietHandler struct {
	slog.Handler
}

const oneLevel = slog.LevelInfo - slog.LevelDebug

func (q quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || q.Handler.Enabled(ctx, level-oneLevel)
}

func (q quietHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level < slog.LevelWarn {
		record.Level -= oneLevel
	}
	return q.Handler.Handle(ctx, record)
}

func (q quietHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return quietHandler{q.Handler.WithAttrs(attributes)}
}
func (q quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{q.Handler.WithGroup(name)}
}

// lastWarning keeps the last warning that was logged. The library's errors are only "connection error"; the broker's answer is only in its
// log.
type lastWarning struct {
	mu   sync.Mutex
	last string
}

func (t *lastWarning) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.last
	t.last = ""
	return last
}

// watch returns a logger whose warnings trouble keeps too.
func (t *lastWarning) watch(log *slog.Logger) *slog.Logger {
	return slog.New(warningHandler{Handler: log.Handler(), trouble: t})
}

type warningHandler struct {
	slog.Handler
	trouble *lastWarning
	// attributes has the logger's attributes: an error may be one of them.
	attributes []slog.Attr
}

func (w warningHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || w.Handler.Enabled(ctx, level)
}

func (w warningHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		w.keep(record)
	}
	if !w.Handler.Enabled(ctx, record.Level) {
		return nil
	}
	return w.Handler.Handle(ctx, record)
}

// repeatedPrefix is the prefix of warnings that only repeat the error that they lead to.
const repeatedPrefix = "Failed to create consumer"

func (w warningHandler) keep(record slog.Record) {
	said := []string{strings.TrimRight(record.Message, ". ")}
	note := func(attribute slog.Attr) bool {
		if attribute.Key == "error" {
			said = append(said, attribute.Value.String())
		}
		return true
	}
	for _, attribute := range w.attributes {
		note(attribute)
	}
	record.Attrs(note)
	if strings.HasPrefix(record.Message, repeatedPrefix) {
		return
	}
	w.trouble.mu.Lock()
	defer w.trouble.mu.Unlock()
	w.trouble.last = strings.Join(said, ": ")
}

func (w warningHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return warningHandler{w.Handler.WithAttrs(attributes), w.trouble, append(append([]slog.Attr{}, w.attributes...), attributes...)}
}

func (w warningHandler) WithGroup(name string) slog.Handler {
	return warningHandler{w.Handler.WithGroup(name), w.trouble, w.attributes}
}
