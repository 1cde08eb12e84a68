package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// overlayMagic is the type of overlay filesystems (statfs(2)).
const overlayMagic = 0x794c7630

// Snapshotter returns the containerd snapshotter for a folder: overlayfs, or native if the folder is on an overlay, as in a container,
// because overlays do not stack.
func Snapshotter(dir string) (string, error) {
	var info syscall.Statfs_t
	if err := syscall.Statfs(dir, &info); err != nil {
		return "", fmt.Errorf("find the filesystem type of %s: %w", dir, err)
	}
	if info.Type == overlayMagic {
		return "native", nil
	}
	return "overlayfs", nil
}

// OOMScore returns the out-of-memory score adjustment of this process (proc(5)).
func OOMScore() int {
	content, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return 0
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	return score
}

// wantedFiles is the number of open files that kubelet requests by default.
const wantedFiles = 1000000

// MaxFiles returns how many open files kubelet may request: a higher limit needs CAP_SYS_RESOURCE.
func MaxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return wantedFiles
	}
	return int(min(limit.Max, wantedFiles))
}
