package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MountsBelow returns the mount points at or below dir. A recursive removal of dir would follow a bind mount and delete the files on the
// other side.
func MountsBelow(dir string) ([]string, error) {
	path, err := filepath.EvalSymlinks(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find mounts below %s: %w", dir, err)
	}
	table, err := os.ReadFile("/proc/thread-self/mounts")
	if os.IsNotExist(err) {
		return nil, nil // not Linux: a dev cluster has no mounts
	}
	if err != nil {
		return nil, fmt.Errorf("find mounts below %s: %w", dir, err)
	}
	return mountsBelow(string(table), path), nil
}

// mountsBelow reads a table of mounts (proc_pid_mounts(5)), which writes blanks and backslashes in names as octal numbers.
func mountsBelow(table, dir string) []string {
	octal := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		target := octal.Replace(fields[1])
		if target == dir || strings.HasPrefix(target, strings.TrimSuffix(dir, "/")+"/") {
			found = append(found, target)
		}
	}
	return found
}
