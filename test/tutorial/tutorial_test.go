package tutorial

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// document is what is followed, from the root of the repository.
const document = "docs/adding-a-kind.md"

// patience is how long a cluster may take to look as the document says; the operator takes milliseconds.
const patience = time.Minute

func TestAddingAKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copyRepository(t, dir)
	content, err := os.ReadFile(filepath.Join(dir, document))
	if err != nil {
		t.Fatal(err)
	}
	blocks := blocksOf(string(content))
	if len(blocks) < 10 {
		t.Fatalf("%s has %d blocks to follow: this test has lost its document", document, len(blocks))
	}
	reader := newShell(t, dir)
	for _, next := range blocks {
		t.Logf("%s:%d", document, next.line)
		if next.language == "sh" {
			if output, failed := reader.run("set -e\n" + next.text + "\nset +e\n"); failed != "" {
				t.Fatalf("%s:%d: the block fails (%s):\n%s\n%s", document, next.line, failed, next.text, output)
			}
			continue
		}
		for _, one := range stepsOf(next.text) {
			reader.follow(next.line, one)
		}
	}
}

// shell is the one that a reader pastes everything into.
type shell struct {
	t     *testing.T
	dir   string
	in    io.Writer
	out   *bufio.Reader
	count int
}

func newShell(t *testing.T, dir string) *shell {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "--norc", "--noprofile")
	command.Dir = dir
	command.Env = environment()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The operator, should it still run, and what the reader has begun last.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
		takeDown(t, dir)
	})
	return &shell{t: t, dir: dir, in: in, out: bufio.NewReader(out)}
}

// follow runs a command and compares what it prints. What is only looked at may take its time to be as it should.
func (s *shell) follow(line int, one step) {
	s.t.Helper()
	last := ""
	attempt := func(context.Context) (bool, error) {
		last, _ = s.run(one.command)
		return agrees(last, one.prints) || !strings.HasPrefix(one.command, "kubectl get "), nil
	}
	_ = wait.PollUntilContextTimeout(s.t.Context(), 200*time.Millisecond, patience, true, attempt)
	if !agrees(last, one.prints) {
		s.t.Fatalf("%s:%d: %s\nprints\n%s\nand not, as the document says,\n%s", document, line, one.command, last, one.prints)
	}
}

// environment is the test's without what leads to another cluster.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "KUBE") || strings.HasPrefix(entry, "MYSQL_OPERATOR_")
	})
}

// takeDown ends the cluster, if there still is one, and shows what the operator said if the test has failed.
func takeDown(t *testing.T, dir string) {
	t.Helper()
	if said, err := os.ReadFile(filepath.Join(dir, "operator.log")); err == nil && t.Failed() {
		t.Logf("the operator:\n%s", said)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	down := exec.CommandContext(ctx, "go", "run", "./devcluster", "down")
	down.Dir, down.Env = dir, environment()
	if output, err := down.CombinedOutput(); err != nil {
		t.Errorf("end the cluster: %v\n%s", err, output)
	}
}

// run pastes text, and returns what is printed, and how it failed; empty if it did not. A shell that ended is a failure.
func (s *shell) run(text string) (output, failed string) {
	s.t.Helper()
	s.count++
	file, mark := filepath.Join(s.t.TempDir(), "pasted.sh"), fmt.Sprintf("----- end of block %d:", s.count)
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, ". %s < /dev/null\nprintf '\\n%s %%d\\n' $?\n", file, mark); err != nil {
		return "", err.Error()
	}
	read := strings.Builder{}
	for {
		line, err := s.out.ReadString('\n')
		if status, isEnd := strings.CutPrefix(line, mark); isEnd {
			if status = strings.TrimSpace(status); status != "0" {
				failed = "exit status " + status
			}
			return read.String(), failed
		}
		read.WriteString(line)
		if err != nil {
			return read.String(), "the shell has ended: " + err.Error()
		}
	}
}

// copyRepository makes a clone of the repository as it is now, without what was built in it.
func copyRepository(t *testing.T, into string) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", ".dev", "bin"}, relative) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(into, relative), 0o755)
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(into, relative), content, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}
