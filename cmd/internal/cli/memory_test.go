package cli

import (
	"io/fs"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

//nolint:paralleltest // it sets up the whole process
func TestUseLittleMemoryLeavesTheLastWordToTheUser(t *testing.T) {
	const before = 123
	for _, story := range []struct {
		name, gogc string
		percent    int
		want       int
	}{
		{"not set", "", gcPercent, gcPercent},
		{"the user's own", "200", gcPercent, before},
	} {
		t.Run(story.name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(before))
			LimitGarbage(func(string) string { return story.gogc }, story.percent)
			if got := debug.SetGCPercent(before); got != story.want {
				t.Errorf("the heap grows by %d %% before it is collected, want %d", got, story.want)
			}
		})
	}
}

//nolint:paralleltest // it sets up the whole process
func TestMemoryIsBoundByTheContainer(t *testing.T) {
	const before = 1 << 50
	group := func(file, content string) fs.FS { return fstest.MapFS{file: {Data: []byte(content)}} }
	for name, story := range map[string]struct {
		group fs.FS
		own   string
		want  int64
	}{
		"the operator":              {group("memory.max", "268435456\n"), "", 214748364},
		"an agent, version 1":       {group("memory/memory.limit_in_bytes", "134217728\n"), "", 107374180},
		"no limit":                  {group("memory.max", "max\n"), "", before},
		"no limit, version 1":       {group("memory/memory.limit_in_bytes", "9223372036854771712\n"), "", before},
		"not in a container":        {fstest.MapFS{}, "", before},
		"the user's own":            {group("memory.max", "268435456\n"), "100MiB", before},
		"something that is no size": {group("memory.max", ""), "", before},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(before))
			boundMemory(func(string) string { return story.own }, story.group)
			if got := debug.SetMemoryLimit(before); got != story.want {
				t.Errorf("the limit is %d bytes, want %d", got, story.want)
			}
		})
	}
}
