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
	return library.NewLoggerWithSlog(slog.New(quiet{log.Handler()}))
}

// quiet lowers the level by one, except for warnings and errors. The library's errors are mostly attempts that it repeats.
type quiet struct {
	slog.Handler
}

const oneLevel = slog.LevelInfo - slog.LevelDebug

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || q.Handler.Enabled(ctx, level-oneLevel)
}

func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	if record.Level < slog.LevelWarn {
		record.Level -= oneLevel
	}
	return q.Handler.Handle(ctx, record)
}

func (q quiet) WithAttrs(attributes []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attributes)}
}
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

// trouble keeps the last warning that was logged. The library's errors are only "connection error"; the broker's answer is only in its log.
type trouble struct {
	mu   sync.Mutex
	last string
}

func (t *trouble) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.last
	t.last = ""
	return last
}

// watch returns a logger whose warnings trouble keeps too.
func (t *trouble) watch(log *slog.Logger) *slog.Logger {
	return slog.New(watching{Handler: log.Handler(), trouble: t})
}

type watching struct {
	slog.Handler
	trouble *trouble
	// attributes has the logger's attributes: an error may be one of them.
	attributes []slog.Attr
}

func (w watching) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || w.Handler.Enabled(ctx, level)
}

func (w watching) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		w.keep(record)
	}
	if !w.Handler.Enabled(ctx, record.Level) {
		return nil
	}
	return w.Handler.Handle(ctx, record)
}

// repetitive is the prefix of warnings that only repeat the error that they lead to.
const repetitive = "Failed to create consumer"

func (w watching) keep(record slog.Record) {
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
	if strings.HasPrefix(record.Message, repetitive) {
		return
	}
	w.trouble.mu.Lock()
	defer w.trouble.mu.Unlock()
	w.trouble.last = strings.Join(said, ": ")
}

func (w watching) WithAttrs(attributes []slog.Attr) slog.Handler {
	return watching{w.Handler.WithAttrs(attributes), w.trouble, append(append([]slog.Attr{}, w.attributes...), attributes...)}
}

func (w watching) WithGroup(name string) slog.Handler {
	return watching{w.Handler.WithGroup(name), w.trouble, w.attributes}
}
