// Package hang makes processes hang in tests.
package hang

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Process stops a process as SIGSTOP does, and returns when all its threads stand still. On a busy machine, the signal reaches them a while
// later, and they may answer until then. The process continues after Continue, and when the test ends.
func Process(t *testing.T, pid int) {
	t.Helper()
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("stop process %d: %v", pid, err)
	}
	for deadline := time.Now().Add(time.Minute); !standsStill(t, pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d did not stand still within a minute", pid)
		}
		<-time.After(time.Millisecond)
	}
}

// Continue lets a process run again.
func Continue(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatalf("continue process %d: %v", pid, err)
	}
}

// standsStill reports whether all threads of a process are stopped (proc(5), /proc/PID/task/TID/stat).
func standsStill(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads %v of process %d: %v", threads, pid, err)
	}
	return !slices.ContainsFunc(threads, func(thread string) bool {
		stat, err := os.ReadFile(thread)
		if err != nil {
			return false // it has ended
		}
		return !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
	})
}
