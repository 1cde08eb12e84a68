package machine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Processes returns the numbers of the processes of a Pod that run a program. Processes that end meanwhile are left out.
func (r Root) Processes(pod, program string) ([]int, error) {
	entries, err := filepath.Glob(r.path("[0-9]*"))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var numbers []int
	for _, entry := range entries {
		command, _ := os.ReadFile(filepath.Join(entry, "cmdline"))
		// By its own name: mysqld's arguments name the operator, too.
		name, _, _ := strings.Cut(string(command), "\x00")
		if filepath.Base(name) != program {
			continue
		}
		environment, _ := os.ReadFile(filepath.Join(entry, "environ"))
		if !bytes.Contains(append([]byte{0}, environment...), []byte("\x00HOSTNAME="+pod+"\x00")) {
			continue
		}
		number, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			return nil, fmt.Errorf("read the number of process %s: %w", entry, err)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}
