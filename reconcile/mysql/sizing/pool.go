package sizing

import "cmp"

// The three settings of the buffer pool, and how MySQL rounds them (manual, "Configuring InnoDB Buffer Pool Size",
// "innodb_buffer_pool_instances"; MySQL source, buf_pool_adjust_chunk_unit).
const (
	settingPool      = "innodb_buffer_pool_size"
	settingInstances = "innodb_buffer_pool_instances"
	settingChunk     = "innodb_buffer_pool_chunk_size"

	// defaultPool is MySQL's default size. leastPool is the smallest size that we choose.
	defaultPool = 128 * mib
	leastPool   = 32 * mib
	// severalFrom is the size from which on MySQL makes more than one instance. mostInstances is the most that MySQL makes.
	severalFrom   = gib
	mostInstances = 64
	// usualInstances is the most instances that we choose. It is also what a user's 0 may mean: MySQL 8.0 then makes so many.
	usualInstances = 8
)

// pool is the buffer pool: its size, the number of its instances, and the size of their chunks.
type pool struct{ size, instances, chunk int64 }

// poolOf returns the pool for this memory and the settings that the user asks for. If the user gives no size, it is rounded down to the
// user's instances and chunks, because MySQL rounds up.
func poolOf(memory int64, asked Settings) pool {
	size := asked.number(settingPool)
	isOurs := size == 0
	if isOurs {
		size = max(leastPool, max(0, memory-fixedOf(memory))/100*choose[int64](memory < smallBelow, 65, 75))
	}
	found := pool{size: size, instances: instancesOf(size, asked)}
	_, ofInstances := asked[settingInstances]
	usual := choose[int64](size < gib, 32*mib, 128*mib)
	if !isOurs || ofInstances {
		// With at least 64 chunks in an instance, rounding loses little.
		usual = between(mib, powerOfTwo(size/found.effectiveInstances()/64), 128*mib)
	}
	found.chunk = max(mib, cmp.Or(asked.number(settingChunk), usual)/mib*mib)
	if isOurs {
		found.size = found.roundedDown()
	}
	return found
}

func instancesOf(size int64, asked Settings) int64 {
	if _, isAsked := asked[settingInstances]; isAsked {
		return between(1, cmp.Or(asked.number(settingInstances), usualInstances), mostInstances)
	}
	return between(1, size/(2*gib), usualInstances)
}

// effectiveInstances is how many instances MySQL makes.
func (p pool) effectiveInstances() int64 { return choose(p.size < severalFrom, 1, p.instances) }

// effectiveSize is the size that MySQL makes of the settings.
func (p pool) effectiveSize() int64 {
	size, instances, chunk := max(5*mib, p.size/mib*mib), p.effectiveInstances(), p.chunk
	if chunk*instances > size {
		// MySQL makes the chunks smaller, not the pool larger.
		chunk = roundUp(roundUp(size, instances)/instances, mib)
	}
	return roundUp(size, chunk*instances)
}

// roundedDown is the largest size, up to this one, that MySQL does not round.
func (p pool) roundedDown() int64 {
	unit := p.chunk * p.effectiveInstances()
	if unit > p.size {
		unit = p.effectiveInstances() * mib
	}
	smaller := pool{p.size / unit * unit, p.instances, p.chunk}
	if smaller.size == p.size {
		return p.size
	}
	return smaller.roundedDown() // the smaller pool may have only one instance
}

func roundUp(value, unit int64) int64 { return (value + unit - 1) / unit * unit }

// Pool returns the size of the buffer pool of a member with this memory, in bytes.
func Pool(memory int64) int64 {
	if memory == 0 {
		return defaultPool
	}
	return poolOf(memory, nil).size
}
