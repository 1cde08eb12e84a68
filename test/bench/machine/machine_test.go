package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " S 1 2 3 4 5 6 7 8 9 10 40 2 13 14"
	for name, story := range map[string]struct {
		content string
		want    spent
		ok      bool
	}{
		"a plain name":                     {"12 (mysqld)" + rest, spent{"mysqld", 42}, true},
		"a name with a space and brackets": {"12 (tmux: (1) server)" + rest, spent{"tmux: (1) server", 42}, true},
		"a line cut short":                 {"12 (mysqld) S 1 2 3", spent{}, false},
		"nothing":                          {"", spent{}, false},
		"times that are no numbers":        {"12 (mysqld) S 1 2 3 4 5 6 7 8 9 10 x y 13", spent{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseStat(story.content)
			if got != story.want || ok != story.ok {
				t.Errorf("got %v %v, want %v %v", got, ok, story.want, story.ok)
			}
		})
	}
}

func TestBusiest(t *testing.T) {
	t.Parallel()
	before := map[int]spent{1: {"init", 500}, 2: {"mysqld", 100}, 3: {"mysqld", 100}, 4: {"etcd", 100}, 6: {"gone", 900}}
	for name, story := range map[string]struct {
		after map[int]spent
		want  string
	}{
		"the two mysqld count together, the idle one not at all": {
			map[int]spent{1: {"init", 500}, 2: {"mysqld", 150}, 3: {"mysqld", 120}, 4: {"etcd", 110}}, "mysqld 70 %, etcd 10 %",
		},
		"one that began meanwhile counts whole": {map[int]spent{5: {"go", 100}}, "go 100 %"},
		"a quiet machine":                       {before, "nothing"},
		"equally busy ones are in the order of their names": {
			map[int]spent{1: {"init", 510}, 4: {"etcd", 110}}, "etcd 10 %, init 10 %",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(story.want, busiest(before, story.after, time.Second)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	root := Root(t.TempDir())
	write(t, root.path("7", "status"), "Name:\tmysql-operator\nVmHWM:\t   61440 kB\nVmRSS:\t   40960 kB\nRssAnon:\t   20480 kB\n")
	write(t, root.path("8", "status"), "Name:\tmysql-operator\nState:\tZ (zombie)\n")
	got, err := root.Memory(7)
	if diff := cmp.Diff(Memory{Resident: 40 << 20, Anonymous: 20 << 20, Peak: 60 << 20}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := root.Memory(8); err == nil || !strings.Contains(err.Error(), "process 8") {
		t.Errorf("a process that has ended must be an error that names it, got %v", err)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(string(Proc)); err != nil {
		t.Skip("this system has no /proc")
	}
	if got := Proc.Describe(); !strings.Contains(got, "GiB") {
		t.Errorf("no memory in %q", got)
	}
	got, err := Proc.Beside(t.Context())
	if err != nil || !strings.HasPrefix(got, "load ") {
		t.Errorf("got %q, %v", got, err)
	}
	own, err := Proc.Memory(os.Getpid())
	if err != nil || own.Resident == 0 || own.Peak < own.Anonymous {
		t.Errorf("got %+v, %v", own, err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
