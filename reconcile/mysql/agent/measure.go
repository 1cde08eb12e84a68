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

// measured is what /metrics tells beside the report to the operator. Nobody decides by it. The zero value knows nothing.
type measured struct {
	// budget is how many bytes of memory mysqld's container has, as its sizes were chosen by; 0 where that is not known.
	budget int64
	// mysqld is what mysqld says of itself; zero while it does not answer.
	mysqld mysqld.Measured
	// wantedFiles is how many files mysqld asks to be able to open, 0 where that is not known.
	wantedFiles int64
	// keyless is how many tables have no primary key; nil where nobody has counted.
	keyless *int64
	// files are bytes on the volume by what files are for; a kind that is not there is not known.
	files map[fileKind]int64
}

// SetMemoryBudget says how many bytes of memory mysqld's container has: the agent sees its own container's only. For /metrics; 0 is not
// known.
func (a *Agent) SetMemoryBudget(memory int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.measured.budget = memory
}

// measures is what is known now. Of a volume whose storage hangs nothing is.
func (a *Agent) measures() measured {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.measured
	if a.disk(time.Now()).Size == 0 {
		now.files = nil
	}
	return now
}

// maintainMeasures asks mysqld once in a while.
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
		a.log.Info("cannot measure mysqld, will try again", "error", err.Error())
		return
	}
	config, err := os.ReadFile(a.layout.serverConfig())
	if err != nil {
		a.log.Info("cannot see how many files mysqld wants to open, will try again", "error", err.Error())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.measured.mysqld = found
	a.measured.wantedFiles = wantedFiles(string(config))
}

// countKeyless counts a primary's tables without a primary key, for /metrics alone; nil where that is not known.
func (a *Agent) countKeyless(ctx context.Context, server *mysqld.Server, leads bool) *int64 {
	if !leads {
		return nil
	}
	count, err := server.TablesWithoutKey(ctx)
	if err != nil {
		a.log.Info("tables without a primary key could not be counted, will try again", "error", err.Error())
		return nil
	}
	return &count
}

// forgetMeasures is for a mysqld that does not answer; the caller holds the lock.
func (a *Agent) forgetMeasures() {
	a.measured.mysqld, a.measuredAt = mysqld.Measured{}, time.Time{}
}

// wantedFiles is how many files mysqld asks its system for, by the my.cnf that it starts with (manual, "open_files_limit"). Where it gets
// fewer it makes max_connections and table_open_cache smaller, so that their values do not tell what was asked for. 0 where there is no
// my.cnf.
func wantedFiles(config string) int64 {
	if config == "" {
		return 0
	}
	connections, tables := chosenNumber(config, "max_connections", 151), chosenNumber(config, "table_open_cache", 4000)
	return max(10+connections+2*tables, 5*connections, chosenNumber(config, "open_files_limit", 5000))
}

// mostAsked is more than any of these settings may be, and can be counted with.
const mostAsked = 1 << 40

// chosenNumber is the value of a setting in a my.cnf: the last one, as for mysqld. MySQL's default stands for none, for 0, and for what is
// no plain number.
func chosenNumber(config, setting string, otherwise int64) int64 {
	chosen := otherwise
	for line := range strings.Lines(config) {
		_, value, _ := strings.Cut(line, "=")
		if !sizing.Names(line, setting) {
			continue
		}
		chosen = otherwise
		if number, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && number > 0 {
			chosen = min(number, mostAsked)
		}
	}
	return chosen
}
