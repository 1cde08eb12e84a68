package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// kill sends SIGKILL to the process of a Pod whose command line contains a word, as the kernel's out-of-memory killer or a fault would.
// Inside its container it could not be killed so: there it is process 1.
func kill(t *testing.T, pod, word string) {
	t.Helper()
	killed := 0
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		command, _ := os.ReadFile(entry + "/cmdline")
		environment, _ := os.ReadFile(entry + "/environ")
		if !bytes.Contains(command, []byte(word)) || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00HOSTNAME="+pod+"\x00")) {
			continue
		}
		number, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
			t.Fatalf("kill %s of %s: %v", word, pod, err)
		}
		killed++
	}
	if killed == 0 {
		t.Fatalf("no process %q of Pod %s runs on this machine", word, pod)
	}
}
