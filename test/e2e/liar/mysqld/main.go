// Command mysqld is what a tenant's image may have in the place of mysqld: it looks for everything that its container can read, writes that
// to the container's log, and answers whoever asks for its version with something else, by every way that there is.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Lie is what it says.
const Lie = "the-tenants-image-was-here"

func main() {
	log, err := os.OpenFile("/proc/1/fd/1", os.O_WRONLY, 0)
	if err != nil {
		log = os.Stdout
	}
	for _, variable := range os.Environ() {
		fmt.Fprintln(log, "environment", variable)
	}
	_ = filepath.WalkDir("/", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what it may not read is not worth a word
		case slices.Contains([]string{"/proc", "/sys", "/dev"}, path):
			return fs.SkipDir
		case !entry.IsDir():
			fmt.Fprintln(log, "file", path, "readable", isReadable(path))
		}
		return nil
	})
	fmt.Fprintln(log, "looked everywhere")
	lie := strings.Repeat(Lie+" ", 20)
	err = errors.Join(os.WriteFile("/dev/termination-log", []byte(lie), 0o600), os.Symlink("/etc/passwd", "/probe/version"))
	fmt.Fprintln(os.Stdout, "Ver", Lie, "for Linux", lie, err)
	fmt.Fprintln(os.Stderr, lie)
}

func isReadable(path string) bool {
	_, err := os.ReadFile(path)
	return err == nil
}
