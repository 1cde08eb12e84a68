package sizing

import "fmt"

// What one mysqld takes beside its buffer pool, measured on MySQL 9.7.4 (docs/sizing.md).
const (
	// fixedSmall and fixedLarge are an idle mysqld without the pages of its pool: with less than smallBelow, where small applies, and with more.
	fixedSmall = 290 * mib
	fixedLarge = 470 * mib
	smallBelow = 2 * gib
	// connectionSize is a connection that has run a query.
	connectionSize = 820 * kib
	// defaultPool is MySQL's default for innodb_buffer_pool_size, defaultConnections for max_connections.
	defaultPool        = 128 * mib
	defaultConnections = 151
)

// byMemory returns the size of the buffer pool.
func (s Settings) byMemory(memory int64) int64 {
	if memory == 0 {
		return defaultPool
	}
	if memory < smallBelow {
		s.small()
	} else {
		tables := between(400, 1000*(memory/mib)/1024, 16000)
		s.set("table_open_cache", tables)
		s.set("table_definition_cache", tables)
	}
	pool := poolOf(memory)
	s.set("innodb_buffer_pool_size", pool.size)
	s.set("innodb_buffer_pool_instances", pool.instances)
	s.set("innodb_buffer_pool_chunk_size", pool.chunk)
	s.set("max_connections", connectionsOf(memory))
	s.set("binlog_transaction_dependency_history_size", between(25_000, memory/(8*kib), 1_000_000))
	s.set("temptable_max_ram", between(32*mib, memory/32, 4*gib))
	s.set("innodb_online_alter_log_max_size", between(128*mib, memory/8, 2*gib))
	s.set("replica_pending_jobs_size_max", between(16*mib, memory/16, 128*mib))
	return pool.size
}

// small trims what serves statistics and many tables. performance_schema itself stays on: the agent reads from it.
func (s Settings) small() {
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

// pool is the buffer pool: its size, in so many instances, each of chunks.
type pool struct{ size, instances, chunk int64 }

// poolOf is the pool for so much memory. MySQL rounds the size up to a multiple of chunk and instances (manual, "Configuring InnoDB Buffer Pool
// Size"), so here it is rounded down.
func poolOf(memory int64) pool {
	size := max(0, memory-fixedOf(memory)) / 100 * choose[int64](memory < smallBelow, 65, 75)
	found := pool{instances: between(1, size/(2*gib), 8), chunk: choose[int64](size < gib, 32*mib, 128*mib)}
	unit := found.instances * found.chunk
	found.size = max(unit, size/unit*unit)
	return found
}

// Pool returns the size of the buffer pool of a member with so much memory, in bytes.
func Pool(memory int64) int64 {
	if memory == 0 {
		return defaultPool
	}
	return poolOf(memory).size
}

func fixedOf(memory int64) int64 { return choose[int64](memory < smallBelow, fixedSmall, fixedLarge) }

func connectionsOf(memory int64) int64 {
	return between(choose[int64](memory < gib, 60, defaultConnections), memory/(12*mib), 8000)
}

// Overcommitted says how a member could need more memory than it has, and what to do; empty where it could not. poolSize and connections are what the user
// asks for, zero where he does not. A limit of less than 512 MiB, which a cluster of a former release may have, never fits.
func Overcommitted(memory, poolSize, connections int64) string {
	if memory == 0 {
		return ""
	}
	if poolSize == 0 {
		poolSize = poolOf(memory).size
	}
	if connections == 0 {
		connections = connectionsOf(memory)
	}
	needed := fixedOf(memory) + poolSize + poolSize*22/1000 + connections*connectionSize
	if needed <= memory {
		return ""
	}
	return fmt.Sprintf("mysqld may need %d MiB and has %d MiB: a buffer pool of %d MiB, %d connections, and %d MiB for all else. "+
		"Lower innodb_buffer_pool_size or max_connections in spec.config, or raise spec.resources.limits.memory",
		needed/mib, memory/mib, poolSize/mib, connections, fixedOf(memory)/mib)
}
