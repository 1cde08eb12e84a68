package cli

import (
	"io/fs"
	"runtime/debug"
	"strconv"
	"strings"
)

// gcPercent is by how much the heap grows before a collection, in percent of the live heap (Go, "A Guide to the Go Garbage Collector").
// Go's default is 100. The operator and the agents keep little memory for long, and most of what they allocate is soon garbage, so twice as
// many collections cost almost nothing. make bench-boot measures what this saves.
const gcPercent = 50

// LimitGarbage configures the garbage collector, unless the user has set GOGC.
func LimitGarbage(environment func(name string) string, percent int) {
	if environment("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// controlGroup is the directory of a container's own control group.
const controlGroup = "/sys/fs/cgroup"

// boundMemory makes the garbage collector run at once when the program uses four fifths of its container's memory limit, unless the user
// has set GOMEMLIMIT. It uses the container's limit, whoever set that. The rest is for memory that the Go runtime does not count.
func boundMemory(environment func(name string) string, group fs.FS) {
	if limit := memoryLimit(group); limit > 0 && environment("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 5 * 4)
	}
}

// memoryLimit returns how much memory, in bytes, the processes of a control group may use (cgroups(7), version 2 and 1); 0 if there is no
// limit.
func memoryLimit(group fs.FS) int64 {
	// unlimited is less than the value for "no limit" in version 1, and more memory than machines have.
	const unlimited = 1 << 60
	for _, file := range []string{"memory.max", "memory/memory.limit_in_bytes"} {
		content, err := fs.ReadFile(group, file)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		if err != nil || limit >= unlimited {
			return 0
		}
		return limit
	}
	return 0
}
