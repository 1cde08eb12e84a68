package sizing

import "cmp"

// What one mysqld takes in addition to its buffer pool, measured on MySQL 9.7.4 (docs/sizing.md).
const (
	// fixedSmall and fixedLarge are the memory of an idle mysqld without the pages of its pool. fixedSmall is for less memory than
	// smallBelow, where the settings of small apply, and fixedLarge for more.
	fixedSmall = 290 * mib
	fixedLarge = 470 * mib
	smallBelow = 2 * gib
	// connectionSize is the memory of a connection that has run a query.
	connectionSize = 820 * kib
	// defaultConnections is MySQL's default for max_connections.
	defaultConnections = 151
	// workerSize is the memory of a worker that applies transactions on a replica. The memory of an idle mysqld has leastWorkers.
	workerSize   = 9 * mib
	leastWorkers = 4
	mostWorkers  = 64
)

// byMemory sets what depends on memory, and returns the size of the buffer pool.
func (s Settings) byMemory(memory int64, asked Settings) int64 {
	if memory == 0 {
		return cmp.Or(asked.number(settingPool), defaultPool)
	}
	if memory < smallBelow {
		s.shrink()
	} else {
		tables := between(400, 1000*(memory/mib)/1024, 16000)
		s.set("table_open_cache", tables)
		s.set("table_definition_cache", tables)
	}
	pool := poolOf(memory, asked)
	s.set(settingPool, pool.size)
	s.set(settingInstances, pool.instances)
	s.set(settingChunk, pool.chunk)
	s.set("max_connections", connectionsOf(memory))
	s.set("binlog_transaction_dependency_history_size", between(25_000, memory/(8*kib), 1_000_000))
	s.set("temptable_max_ram", between(32*mib, memory/32, 4*gib))
	s.set("innodb_online_alter_log_max_size", between(128*mib, memory/8, 2*gib))
	s.set("replica_pending_jobs_size_max", between(16*mib, memory/16, 128*mib))
	s.set(settingWorkers, workersOf(memory))
	return pool.size
}

// shrink reduces the memory for statistics and for many tables. performance_schema itself stays on, because the agent reads from it.
func (s Settings) shrink() {
	s.set("innodb_log_buffer_size", 16*mib)
	s.set("table_open_cache", 400)
	s.set("table_definition_cache", 400)
	s.set("performance_schema_digests_size", 2000)
	s.set("performance_schema_error_size", 0)
	s.set("performance_schema_events_statements_history_long_size", 1000)
	for _, what := range []string{"waits", "stages", "transactions"} {
		s.set("performance_schema_events_"+what+"_history_long_size", 100)
	}
}

func fixedOf(memory int64) int64 {
	return choose[int64](memory < smallBelow, fixedSmall, fixedLarge) + (workersOf(memory)-leastWorkers)*workerSize
}

// workersOf is how many workers apply transactions on a replica. A worker waits for the disk most of the time: each commit is flushed, and
// several workers share a flush. So many of them apply as fast as clients write at the same time, also with few CPUs.
func workersOf(memory int64) int64 {
	return between(leastWorkers, min(memory/(128*mib), max(16, memory/(256*mib))), mostWorkers)
}

func connectionsOf(memory int64) int64 {
	return between(choose[int64](memory < gib, 60, defaultConnections), memory/(12*mib), 8000)
}
