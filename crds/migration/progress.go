package migration

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Progress is the progress of the migration of one definition.
type Progress struct {
	// Definition is its name.
	Definition string
	// From are the versions that objects may be stored in, To is the storage version.
	From []string
	To   string
	// Done is how many objects are known to be stored in To, also because of an earlier run. Skipped is how many were deleted before they
	// were rewritten, Refused how many the API server did not accept. They add up to Total, the number of objects at the beginning; 0:
	// unknown.
	Done, Skipped, Refused, Total int
	// Rate is the average number of objects that this run handled in a second.
	Rate float64
	// Resumed says that an earlier run did a part.
	Resumed bool
}

// reportEvery is the least time between two reports.
const reportEvery = 10 * time.Second

// meter counts objects, and reports the progress from time to time. Goroutines may use it concurrently.
type meter struct {
	log    logr.Logger
	report func(Progress)
	begun  time.Time

	lock       sync.Mutex
	progress   Progress
	before     int // the part of Done that an earlier run did
	lastReport time.Time
}

// start sets the total number of objects, known from the first page, and reports.
func (m *meter) start(total int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.lastReport.IsZero() {
		m.progress.Total = total
		m.logProgress("starting to rewrite stored objects")
	}
}

// addResumed counts objects that an earlier run did.
func (m *meter) addResumed(done int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.before += done
	m.progress.Done += done
}

// add counts the results of objects, and reports if a report is due.
func (m *meter) add(more Progress) Progress {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.progress.Done += more.Done
	m.progress.Skipped += more.Skipped
	m.progress.Refused += more.Refused
	m.rate()
	if time.Since(m.lastReport) >= reportEvery {
		m.logProgress("rewriting stored objects")
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
	m.logProgress("stopped rewriting stored objects")
	return m.progress
}

// accepted reports whether the API server accepted any object in this run.
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

func (m *meter) logProgress(message string) {
	m.lastReport = time.Now()
	p := m.progress
	m.log.Info(message, "definition", p.Definition, "from", p.From, "to", p.To, "done", p.Done, "skipped", p.Skipped, "refused", p.Refused,
		"total", p.Total, "rate", int(p.Rate), "resumed", p.Resumed)
	if m.report != nil {
		m.report(p)
	}
}
