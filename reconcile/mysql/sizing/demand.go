package sizing

import (
	"cmp"
	"fmt"
	"strings"
)

// mostConnections is the maximum of max_connections.
const mostConnections = 100_000

// settingWorkers is the number of a replica's workers, and settingJobs limits their queue. The others are their names before MySQL 8.0.26,
// which releases until 8.4 accept, too.
const (
	settingWorkers = "replica_parallel_workers"
	formerWorkers  = "slave_parallel_workers"
	settingJobs    = "replica_pending_jobs_size_max"
	formerJobs     = "slave_pending_jobs_size_max"
)

// share is memory that a setting limits: its value multiplied by times. A value up to usual is already in the sum, or in the room that
// the pool leaves.
type share struct {
	setting      string
	usual, times int64
}

// sharesOf returns the shares that a user may raise. A packet is in memory three times: on the primary for its replica, in the receiver,
// and in the worker that applies it.
func sharesOf(memory int64) []share {
	ours := Tune(Resources{Memory: memory})
	jobs := ours.number(settingJobs)
	return []share{
		{"max_allowed_packet", 64 * mib, 3},
		{settingJobs, jobs, 1},
		{settingWorkers, workersOf(memory), workerSize},
		{"temptable_max_ram", ours.number("temptable_max_ram"), 1},
		{"innodb_log_buffer_size", cmp.Or(ours.number("innodb_log_buffer_size"), 64*mib), 1},
		{"key_buffer_size", 8 * mib, 1},
	}
}

// raised returns how much memory the user's settings may take beyond the usual, in bytes, and the names of these settings.
func raised(memory int64, asked Settings) (sum int64, names []string) {
	for _, one := range sharesOf(memory) {
		name := one.setting
		if former := formerName(name); asked[former] != "" {
			name = former // it comes later in a sorted my.cnf, and the last one counts
		}
		if more := asked.number(name) - one.usual; more > 0 {
			sum += more * one.times
			names = append(names, name)
		}
	}
	return sum, names
}

// formerName returns the earlier name of a setting; empty if it has none.
func formerName(name string) string {
	return map[string]string{settingJobs: formerJobs, settingWorkers: formerWorkers}[name]
}

// Overcommitted explains how a member could need more memory than it has, and what to do; empty if it could not. asked are the user's
// settings. A limit of less than 512 MiB, which a cluster of an earlier release may have, never fits.
func Overcommitted(memory int64, asked Settings) string {
	if memory == 0 {
		return ""
	}
	wanted := poolOf(memory, asked)
	size := wanted.effectiveSize()
	connections := min(cmp.Or(asked.number("max_connections"), connectionsOf(memory)), mostConnections)
	more, names := raised(memory, asked)
	needed := fixedOf(memory) + size + size*22/1000 + connections*connectionSize + more
	if needed <= memory {
		return ""
	}
	rounded, beyond := "", ""
	if size != wanted.size {
		rounded = fmt.Sprintf(", which MySQL rounds up to %d MiB, to whole chunks (innodb_buffer_pool_chunk_size) in all innodb_buffer_pool_instances,", size/mib)
	}
	if len(names) > 0 {
		beyond = fmt.Sprintf("%d MiB more because of %s, ", more/mib, strings.Join(names, ", "))
	}
	return fmt.Sprintf("mysqld may need %d MiB and has %d MiB: a buffer pool of %d MiB%s, %d connections, %sand %d MiB for everything else. "+
		"Lower %s in spec.config, or raise spec.resources.limits.memory",
		needed/mib, memory/mib, wanted.size/mib, rounded, connections, beyond, fixedOf(memory)/mib,
		strings.Join(append([]string{settingPool, "max_connections"}, names...), " or "))
}
