package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// residentFiles is how much of the program's file is in memory, in KiB (proc(5), RssFile).
func residentFiles(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "RssFile:"); found {
			size, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return size
		}
	}
	t.Skip("this kernel does not tell RssFile")
	return 0
}

//nolint:paralleltest // it measures the whole process
func TestReleaseProgramGivesBackAndGoesOn(t *testing.T) {
	before := residentFiles(t)
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := residentFiles(t); after >= before*3/4 {
		t.Errorf("of %d KiB of the program in memory %d are left", before, after)
	}
	if text := overview(); !strings.Contains(text, "run [flags]") {
		t.Errorf("the program no longer knows what it says: %q", text)
	}
}
