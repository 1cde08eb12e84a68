package agent

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAStateThatSomebodyPlanted: the image of a MySQLCluster could write to the volume before. What it left is not followed, does not hang and
// does not fill the memory, and nothing of it is repeated.
func TestAStateThatSomebodyPlanted(t *testing.T) {
	t.Parallel()
	const secret = "S3cr3t"
	for story, plant := range map[string]func(file string) error{
		"a link to a mounted Secret": func(file string) error {
			elsewhere := filepath.Join(filepath.Dir(file), "identity")
			if err := os.WriteFile(elsewhere, []byte(secret), 0o600); err != nil {
				return err
			}
			return os.Symlink(elsewhere, file)
		},
		"a pipe":      func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"a folder":    func(file string) error { return os.Mkdir(file, 0o700) },
		"a huge file": func(file string) error { return os.WriteFile(file, make([]byte, maxState+1), 0o600) },
		"nonsense":    func(file string) error { return os.WriteFile(file, []byte(secret), 0o600) },
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "member.json")
			if err := plant(file); err != nil {
				t.Fatal(err)
			}
			_, found, err := loadState(file)
			if err == nil || found || strings.Contains(err.Error(), secret) {
				t.Errorf("found %t, error %v", found, err)
			}
		})
	}
}
