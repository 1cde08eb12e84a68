package mover

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

const (
	// sampleEvery is how often the rate is measured. The rate is that of the last samples.
	sampleEvery = time.Second
	samples     = 5
	// logEvery is how often the progress is logged.
	logEvery = 10 * time.Second
)

// meter measures the progress of a transfer.
type meter struct {
	mu       sync.Mutex
	progress protocol.Progress
	history  []sample
}

type sample struct {
	at    time.Time
	bytes int64
}

// now returns the current progress.
func (m *meter) now() protocol.Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.progress
}

// update changes the progress under the lock.
func (m *meter) update(change func(*protocol.Progress)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.progress)
}

func (m *meter) stage(name string) { m.update(func(p *protocol.Progress) { p.Stage = name }) }
func (m *meter) total(bytes int64) { m.update(func(p *protocol.Progress) { p.TotalBytes = bytes }) }
func (m *meter) done(bytes int64)  { m.update(func(p *protocol.Progress) { p.Bytes = bytes }) }

// sample updates the rate.
func (m *meter) sample(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history = append(m.history, sample{at: at, bytes: m.progress.Bytes})
	if len(m.history) > samples {
		m.history = m.history[1:]
	}
	first, last := m.history[0], m.history[len(m.history)-1]
	if took := last.at.Sub(first.at); took > 0 {
		m.progress.BytesPerSecond = max(0, int64(float64(last.bytes-first.bytes)/took.Seconds())) // a new attempt begins at 0
	}
}

// watch takes samples and logs the progress until the context ends.
func (m *meter) watch(ctx context.Context, log logr.Logger) {
	look := time.NewTicker(sampleEvery)
	defer look.Stop()
	tell := time.NewTicker(logEvery)
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-look.C:
			m.sample(at)
		case <-tell.C:
			m.log(log)
		}
	}
}

func (m *meter) log(log logr.Logger) {
	progress := m.now()
	log.Info("progress", "stage", progress.Stage, "percent", progress.Percent(), "bytes", progress.Bytes,
		"totalBytes", progress.TotalBytes, "bytesPerSecond", progress.BytesPerSecond)
}

// metered counts what is written to a sink, and pauses for the donor.
type metered struct {
	clone.Sink
	meter *meter
	pacer *pacer
}

func (s metered) Write(file clone.File, offset int64, data []byte) error {
	s.pacer.begin()
	err := s.Sink.Write(file, offset, data)
	s.pacer.end()
	if err != nil {
		return err
	}
	s.meter.update(func(p *protocol.Progress) { p.Bytes += int64(len(data)) })
	return nil
}
