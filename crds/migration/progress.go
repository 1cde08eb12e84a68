package migration

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Progress is how far the migration of one definition is.
type Progress struct {
	// Definition is its name.
	Definition string
	// From are the versions objects may be stored in, To is the one for storing.
	From []string
	To   string
	// Done is how many objects are known to be stored in To, also by a run before; Skipped how many were deleted before their turn;
	// Refused how many the API server did not accept. They add up to Total, which is how many objects there were at the beginning; 0: unknown.
	Done, Skipped, Refused, Total int
	// Rate is how many objects this run went through in a second, on the average.
	Rate float64
	// Resumed says that a run before did a part.
	Resumed bool
}

// reportEvery is the least time between two reports.
const reportEvery = 10 * time.Second

// meter counts, and tells it now and then. It may be used by many at once.
type meter struct {
	log    logr.Logger
	report func(Progress)
	begun  time.Time

	lock     sync.Mutex
	progress Progress
	before   int // of Done: by a run before
	told     time.Time
}

// start takes how many objects there are from the first page, and reports.
func (m *meter) start(total int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.told.IsZero() {
		m.progress.Total = total
		m.say("rewriting stored objects begins")
	}
}

// earlier counts objects that a run before did.
func (m *meter) earlier(done int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.before += done
	m.progress.Done += done
}

// add counts what became of objects, and reports if it is time to.
func (m *meter) add(more Progress) Progress {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.progress.Done += more.Done
	m.progress.Skipped += more.Skipped
	m.progress.Refused += more.Refused
	m.rate()
	if time.Since(m.told) >= reportEvery {
		m.say("rewriting stored objects")
	}
	return m.progress
}

func (m *meter) now() Progress {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.rate()
	return m.progress
}

// end reports at once.
func (m *meter) end() Progress {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.rate()
	m.say("rewriting stored objects ends")
	return m.progress
}

// accepted says whether this run had any object accepted.
func (m *meter) accepted() bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.progress.Done > m.before
}

func (m *meter) rate() {
	here := m.progress.Done - m.before + m.progress.Skipped + m.progress.Refused
	if elapsed := time.Since(m.begun).Seconds(); elapsed > 0 {
		m.progress.Rate = float64(here) / elapsed
	}
}

func (m *meter) say(message string) {
	m.told = time.Now()
	p := m.progress
	m.log.Info(message, "definition", p.Definition, "from", p.From, "to", p.To, "done", p.Done, "skipped", p.Skipped, "refused", p.Refused,
		"total", p.Total, "rate", int(p.Rate), "resumed", p.Resumed)
	if m.report != nil {
		m.report(p)
	}
}
