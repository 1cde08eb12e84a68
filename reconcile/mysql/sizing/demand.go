package sizing

import (
	"cmp"
	"fmt"
	"strings"
)

// mostConnections is the most that max_connections may be.
const mostConnections = 100_000

// settingJobs bounds what a replica's workers have before them, and has a name of before MySQL 8.0.26 that releases until 8.4 know, too.
const (
	settingJobs = "replica_pending_jobs_size_max"
	formerJobs  = "slave_pending_jobs_size_max"
)

// share is memory that a setting bounds: so many times what it says. What is within usual is in the sum already, or in the room that the
// pool leaves.
type share struct {
	setting      string
	usual, times int64
}

// sharesOf are those that a user may raise. A packet is held by the primary for its replica, by the receiver, and by the worker that
// applies it.
func sharesOf(memory int64) []share {
	ours := Tune(Given{Memory: memory})
	jobs := ours.number(settingJobs)
	return []share{
		{"max_allowed_packet", 64 * mib, 3},
		{settingJobs, jobs, 1},
		{"temptable_max_ram", ours.number("temptable_max_ram"), 1},
		{"innodb_log_buffer_size", cmp.Or(ours.number("innodb_log_buffer_size"), 64*mib), 1},
		{"key_buffer_size", 8 * mib, 1},
	}
}

// raised is what the user's settings may take beyond what is usual, in bytes, and which these are.
func raised(memory int64, asked Settings) (sum int64, names []string) {
	for _, one := range sharesOf(memory) {
		name := one.setting
		if name == settingJobs && asked[formerJobs] != "" {
			name = formerJobs // it comes later in a my.cnf in order, and the last one counts
		}
		if more := asked.number(name) - one.usual; more > 0 {
			sum += more * one.times
			names = append(names, name)
		}
	}
	return sum, names
}

// Overcommitted says how a member could need more memory than it has, and what to do; empty where it could not. asked are the settings that
// the user chooses. A limit of less than 512 MiB, which a cluster of a former release may have, never fits.
func Overcommitted(memory int64, asked Settings) string {
	if memory == 0 {
		return ""
	}
	wanted := poolOf(memory, asked)
	size := wanted.inForce()
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
		beyond = fmt.Sprintf("%d MiB for what is raised by %s, ", more/mib, strings.Join(names, ", "))
	}
	return fmt.Sprintf("mysqld may need %d MiB and has %d MiB: a buffer pool of %d MiB%s, %d connections, %sand %d MiB for all else. "+
		"Lower %s in spec.config, or raise spec.resources.limits.memory",
		needed/mib, memory/mib, wanted.size/mib, rounded, connections, beyond, fixedOf(memory)/mib,
		strings.Join(append([]string{settingPool, "max_connections"}, names...), " or "))
}
