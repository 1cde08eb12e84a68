package daemon

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes detaches the program from the launcher's terminal.
func processAttributes(ownMachine bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if ownMachine {
		attributes.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	}
	return attributes
}

func signalProcess(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// startTime returns when a process started, and whether it runs. A process that has ended but was not yet reaped does not run.
func startTime(pid int) (uint64, bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	return parseStat(string(content))
}

// parseStat reads /proc/PID/stat (proc(5)). The name, in parentheses, may contain anything. After it, the state is field 3, the number of
// threads field 20 and the start time field 22. A killed process has ended when its last thread has: the first thread may be a zombie while
// others still hold files and ports.
func parseStat(stat string) (uint64, bool) {
	_, rest, found := cutLast(stat, ")")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return 0, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	threads, alsoErr := strconv.Atoi(fields[17])
	ended := fields[0] == "X" || (fields[0] == "Z" && threads <= 1)
	if err != nil || alsoErr != nil || ended {
		return 0, false
	}
	return start, true
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func bootID() string {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
