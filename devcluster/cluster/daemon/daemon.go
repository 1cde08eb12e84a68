// Package daemon runs programs in the background after the launcher has ended, and finds them at its next run.
//
// One file records each running program. A process counts as the recorded one only if its number, its start time and the machine's boot
// match. So an old file never makes the launcher signal another process.
package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/atomicfile"
)

// Spec is a program to keep running.
type Spec struct {
	Name string
	Args []string // the first is the program's path
	Env  []string // KEY=VALUE, all it gets
	// Inputs are further inputs of the program, above all its configuration. If they differ, a running program is restarted. Order does not
	// matter.
	Inputs []string
	// Log is the file its output is appended to.
	Log string
	// OwnMachine gives the program its own process, mount, network, IPC and host name namespaces, in which it is process 1. Linux and root
	// only.
	OwnMachine bool
	// Ready is called after the start of the program, with a pipe to its standard input, which is closed afterwards. If nil, the program
	// gets no input.
	Ready func(pid int, input *os.File) error
}

// hash identifies the spec. A running program with another hash was started from another spec.
func (s Spec) hash() string {
	sum := sha256.New()
	for _, part := range slices.Concat([]string{s.Name, s.Log}, s.Args, s.Env, slices.Sorted(slices.Values(s.Inputs))) {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Process is a running program.
type Process struct {
	Name    string    `json:"name"`
	PID     int       `json:"pid"`
	Start   uint64    `json:"start"` // clock ticks since boot, from the kernel
	Boot    string    `json:"boot"`
	Hash    string    `json:"hash"`
	Started time.Time `json:"started"`
	Log     string    `json:"log"`
}

// Keeper records the running programs in a folder.
type Keeper struct {
	Dir string
}

// Ensure starts the program unless it already runs with this spec. A program that runs with another spec is stopped first, with the given
// grace.
func (k Keeper) Ensure(ctx context.Context, spec Spec, grace time.Duration) (started bool, err error) {
	running, alive, err := k.Find(spec.Name)
	if err != nil {
		return false, err
	}
	if alive && running.Hash == spec.hash() {
		return false, nil
	}
	if alive {
		if err := k.Stop(ctx, spec.Name, grace); err != nil {
			return false, err
		}
	}
	return true, k.start(ctx, spec)
}

// Find returns the recorded program and whether it still runs.
func (k Keeper) Find(name string) (Process, bool, error) {
	var p Process
	content, err := os.ReadFile(k.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("find %s: %w", name, err)
	}
	if err := json.Unmarshal(content, &p); err != nil {
		// The launcher died while it wrote the file: the user must find the process by name.
		return p, false, fmt.Errorf("find %s: %s is damaged (%w): kill the process by hand and remove the file", name, k.file(name), err)
	}
	return p, p.alive(), nil
}

// List returns the recorded programs, sorted by name.
func (k Keeper) List() ([]Process, error) {
	entries, err := os.ReadDir(k.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list programs: %w", err)
	}
	var all []Process
	for _, entry := range entries {
		name, remembered := strings.CutSuffix(entry.Name(), ".json")
		if !remembered {
			continue
		}
		p, _, err := k.Find(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Stop terminates the program, and kills it when the grace is over. A grace of 0 kills it at once. It returns when the process has ended.
func (k Keeper) Stop(ctx context.Context, name string, grace time.Duration) error {
	p, alive, err := k.Find(name)
	if err != nil {
		return err
	}
	if alive && grace > 0 {
		if err := signalProcess(p.PID, syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		alive = p.waitForExit(ctx, grace)
	}
	if alive {
		if err := signalProcess(p.PID, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill %s: %w", name, err)
		}
		// The wait continues also after an interrupt: the resources of the process must be free when the launcher ends.
		if p.waitForExit(context.WithoutCancel(ctx), killWait) {
			return fmt.Errorf("kill %s: process %d still exists after %s: it hangs in the kernel, restart the machine", name, p.PID, killWait)
		}
	}
	if err := os.Remove(k.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return nil
}

// killWait bounds how long a killed process and its children may need to end.
const killWait = 30 * time.Second

// waitForExit waits for the process to end, at most for the limit, and reports whether it still exists.
func (p Process) waitForExit(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for p.alive() {
		select {
		case <-ctx.Done():
			return p.alive()
		case <-tick.C:
		}
	}
	return false
}

func (p Process) alive() bool {
	start, running := startTime(p.PID)
	return running && start == p.Start && bootID() == p.Boot
}

func (k Keeper) file(name string) string { return filepath.Join(k.Dir, name+".json") }

func (k Keeper) start(ctx context.Context, spec Spec) error {
	if err := errors.Join(os.MkdirAll(k.Dir, 0o755), os.MkdirAll(filepath.Dir(spec.Log), 0o755)); err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer log.Close()
	// The program continues to run after the launcher ends.
	command := exec.CommandContext(context.WithoutCancel(ctx), spec.Args[0], spec.Args[1:]...)
	command.Env, command.Stdout, command.Stderr = spec.Env, log, log
	command.SysProcAttr = processAttributes(spec.OwnMachine)
	var input *os.File
	if spec.Ready != nil {
		reader, writer, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("start %s: %w", spec.Name, err)
		}
		defer reader.Close()
		defer writer.Close()
		command.Stdin, input = reader, writer
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// Reap the process if it ends while the launcher runs. Its log says how it ended.
	go func() { _ = command.Wait() }()
	if err := k.remember(spec, command.Process.Pid); err != nil {
		return errors.Join(err, command.Process.Kill())
	}
	if spec.Ready == nil {
		return nil
	}
	if err := spec.Ready(command.Process.Pid, input); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", spec.Name, err), k.Stop(ctx, spec.Name, 0))
	}
	return nil
}

func (k Keeper) remember(spec Spec, pid int) error {
	start, running := startTime(pid)
	if !running {
		return fmt.Errorf("start %s: the process ended immediately%s", spec.Name, Tail(spec.Log))
	}
	content, err := json.Marshal(Process{
		Name: spec.Name, PID: pid, Start: start, Boot: bootID(), Hash: spec.hash(), Started: time.Now().UTC(), Log: spec.Log,
	})
	if err != nil {
		return fmt.Errorf("record %s: %w", spec.Name, err)
	}
	if err := atomicfile.Write(k.file(spec.Name), content, 0o644); err != nil {
		return fmt.Errorf("record %s: %w", spec.Name, err)
	}
	return nil
}

// Tail returns the name and the last lines of a log, for an error message.
func Tail(log string) string {
	const lines, bytes = 5, 16 << 10
	content, err := readEnd(log, bytes)
	if err != nil {
		return fmt.Sprintf(" (log %s: %v)", log, err)
	}
	all := strings.Split(strings.TrimSpace(content), "\n")
	return fmt.Sprintf("; the end of %s:\n  %s", log, strings.Join(all[max(0, len(all)-lines):], "\n  "))
}

// readEnd reads at most the last limit bytes: the logs of an old cluster are large.
func readEnd(path string, limit int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-limit), limit))
	return string(content), err
}
