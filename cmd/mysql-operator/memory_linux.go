package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram gives back the pages of the program itself that are in memory: after the start most of them, a few tens of MiB, are not
// needed again. Those that are come back from the page cache one by one. Only what cannot be written is given back, so nothing is lost
// (madvise(2), MADV_DONTNEED: such pages are read from the file again).
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var from, to uintptr
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil {
			continue
		}
		if !strings.HasSuffix(lines.Text(), " "+program) || strings.Contains(rights, "w") {
			continue
		}
		if _, _, failure := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); failure != 0 {
			return fmt.Errorf("give back %s: %w", lines.Text(), failure)
		}
	}
	return lines.Err()
}
