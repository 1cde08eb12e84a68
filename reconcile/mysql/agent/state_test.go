package agent

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAStateThatSomebodyPlanted: the image of a MySQLCluster could write to the volume before. The agent follows no link that it left, does
// not hang, does not fill its memory, and repeats nothing of it.
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

// TestWhatSomebodyPlantedBesideAState: the agent first writes the new state next to the old one, where the image could have left something
// too. The agent neither follows it nor waits for it.
func TestWhatSomebodyPlantedBesideAState(t *testing.T) {
	t.Parallel()
	for story, plant := range map[string]func(beside, victim string) error{
		"a link":                   func(beside, victim string) error { return os.Symlink(victim, beside) },
		"a pipe":                   func(beside, _ string) error { return syscall.Mkfifo(beside, 0o600) },
		"another name":             func(beside, victim string) error { return os.Link(victim, beside) },
		"a folder":                 func(beside, _ string) error { return os.MkdirAll(filepath.Join(beside, "deep"), 0o700) },
		"a file that a crash left": func(beside, _ string) error { return os.WriteFile(beside, []byte("half a sta"), 0o600) },
		"nothing, as expected":     func(string, string) error { return nil },
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file, victim := filepath.Join(folder, "member.json"), filepath.Join(folder, "victim")
			write(t, victim, "theirs")
			if err := plant(file+".new", victim); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- saveState(file, memberState()) }()
			select {
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it hangs")
			}
			info, err := os.Lstat(file)
			if err != nil || !info.Mode().IsRegular() || read(t, victim) != "theirs" {
				t.Errorf("the state is %v (%v), and the other file has %q", info, err, read(t, victim))
			}
			if kept, found, err := loadState(file); err != nil || !found || kept.Data != memberState().Data {
				t.Errorf("the state is %+v, %t, %v", kept, found, err)
			}
		})
	}
}
