package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// kill sends SIGKILL to the processes of a Pod that run a program, as the kernel's out-of-memory killer or a fault would.
func kill(t *testing.T, pod, program string) {
	t.Helper()
	signal(t, pod, program, syscall.SIGKILL)
}

// signal sends a signal to the processes of a Pod that run a program.
func signal(t *testing.T, pod, program string, number syscall.Signal) {
	t.Helper()
	numbers := processes(t, pod, program)
	for _, process := range numbers {
		if err := syscall.Kill(process, number); err != nil {
			t.Fatalf("send %s to %s of %s: %v", number, program, pod, err)
		}
	}
	if len(numbers) == 0 {
		t.Fatalf("no process %q of Pod %s runs on this machine", program, pod)
	}
}

// processes returns the numbers of the processes of a Pod that run a program.
func processes(t *testing.T, pod, program string) []int {
	t.Helper()
	var numbers []int
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		command, _ := os.ReadFile(entry + "/cmdline")
		environment, _ := os.ReadFile(entry + "/environ")
		// By its own name: mysqld's arguments name the operator, too.
		name, _, _ := strings.Cut(string(command), "\x00")
		if filepath.Base(name) != program || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00HOSTNAME="+pod+"\x00")) {
			continue
		}
		number, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, number)
	}
	return numbers
}
