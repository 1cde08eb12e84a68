package e2e

import (
	"syscall"
	"testing"

	"github.com/mysql-operator/mysql-operator/test/bench/machine"
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
	numbers, err := machine.Proc.Processes(pod, program)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}
