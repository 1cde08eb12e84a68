package cli

import (
	"io/fs"
	"runtime/debug"
	"strconv"
	"strings"
)

// gcPercent is how much, in percent of what is live, the heap grows before it is collected (Go, "A Guide to the Go Garbage Collector").
// Go's default is 100. What the operator and the agents keep is small and lives long, and what they allocate is soon garbage: collecting
// twice as often costs next to nothing. make bench-boot measures what it saves.
const gcPercent = 50

// UseLittleMemory sets up the garbage collector, unless the user has done so by GOGC.
func UseLittleMemory(environment func(name string) string, percent int) {
	if environment("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// controlGroup is where a container sees its own control group.
const controlGroup = "/sys/fs/cgroup"

// boundMemory has garbage collected at once when the program uses four fifths of what its container may use, unless the user has set a
// limit by GOMEMLIMIT. It follows the limit of the Pod, whoever set that. What is left is for what the Go runtime does not count.
func boundMemory(environment func(name string) string, group fs.FS) {
	if limit := memoryLimit(group); limit > 0 && environment("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 5 * 4)
	}
}

// memoryLimit is how much memory, in bytes, the processes of a control group may use (cgroups(7), version 2 and 1); 0 if there is no limit.
func memoryLimit(group fs.FS) int64 {
	// unlimited is less than what version 1 says for "no limit", and more than machines have.
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
