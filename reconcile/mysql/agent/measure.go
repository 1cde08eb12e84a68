package agent

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
)

// measured is what /metrics reports in addition to the report to the operator. No decision depends on it. The zero value knows nothing.
type measured struct {
	// budget is the memory of mysqld's container in bytes, from which mysqld's sizes were chosen; 0 if unknown.
	budget int64
	// mysqld is mysqld's own report; zero while it does not answer.
	mysqld mysqld.Measured
	// wantedFiles is how many files mysqld asks to be able to open; 0 if unknown.
	wantedFiles int64
	// commitDelay is how long this mysqld delays commits.
	commitDelay time.Duration
	// starts is how often mysqld has started in its container; 0 while its supervisor does not answer.
	starts int
	// keyless is how many tables have no primary key; nil if the agent has not counted them.
	keyless *int64
	// files are bytes on the volume by purpose of the files. A missing purpose is unknown.
	files map[fileKind]int64
}

// SetMemoryBudget sets the memory of mysqld's container in bytes, for /metrics: the agent sees only its own container's memory. 0 means
// unknown.
func (a *Agent) SetMemoryBudget(memory int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.measured.budget = memory
}

// measures returns the latest measurements. While the volume's storage hangs, it leaves out the files.
func (a *Agent) measures() measured {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.measured
	now.starts = a.mysqld.Starts
	if a.disk(time.Now()).Size == 0 {
		now.files = nil
	}
	return now
}

// maintainMeasures measures mysqld periodically.
func (a *Agent) maintainMeasures(ctx context.Context) {
	now := time.Now()
	if now.Sub(a.measuredAt) < surveyEvery {
		return
	}
	a.measuredAt = now
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := a.local.Measure(bounded)
	if err != nil {
		a.log.Info("cannot read mysqld's memory use and its limit of open files, will try again", "error", err.Error())
		return
	}
	config, err := os.ReadFile(a.layout.serverConfig())
	if err != nil {
		a.log.Info("cannot read how many files mysqld asks to open, will try again", "error", err.Error())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.measured.mysqld = found
	a.measured.wantedFiles = wantedFiles(string(config))
}

// countKeyless counts a primary's tables without a primary key, only for /metrics. It returns nil if the number is unknown.
func (a *Agent) countKeyless(ctx context.Context, server *mysqld.Server, leads bool) *int64 {
	if !leads {
		return nil
	}
	count, err := server.TablesWithoutKey(ctx)
	if err != nil {
		a.log.Info("cannot count tables without a primary key, will try again", "error", err.Error())
		return nil
	}
	return &count
}

// forgetMeasures forgets the measurements of a mysqld that does not answer. The caller must hold the lock.
func (a *Agent) forgetMeasures() {
	a.measured.mysqld, a.measuredAt = mysqld.Measured{}, time.Time{}
}

// wantedFiles returns how many files mysqld asks its system for, from the my.cnf that it starts with (manual, "open_files_limit"). If it
// gets fewer, it makes max_connections and table_open_cache smaller, so their values do not show what it asked for. wantedFiles returns 0
// without a my.cnf.
func wantedFiles(config string) int64 {
	if config == "" {
		return 0
	}
	connections, tables := chosenNumber(config, "max_connections", 151), chosenNumber(config, "table_open_cache", 4000)
	return max(10+connections+2*tables, 5*connections, chosenNumber(config, "open_files_limit", 5000))
}

// mostAsked is larger than any of these settings may be, and small enough to calculate with.
const mostAsked = 1 << 40

// chosenNumber returns the value of a setting in a my.cnf. As for mysqld, the last one counts. It returns MySQL's default if the setting is
// missing, 0, or not a plain number.
func chosenNumber(config, setting string, otherwise int64) int64 {
	chosen := otherwise
	for line := range strings.Lines(config) {
		_, value, _ := strings.Cut(line, "=")
		if !sizing.HasSetting(line, setting) {
			continue
		}
		chosen = otherwise
		if number, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && number > 0 {
			chosen = min(number, mostAsked)
		}
	}
	return chosen
}
