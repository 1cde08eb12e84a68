// Package machine says what a benchmark ran on, and beside what, as Linux tells it in /proc: without that a figure means little.
package machine

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Root is where /proc is; tests have one of their own.
type Root string

// Proc is the machine's.
const Proc Root = "/proc"

const (
	kibibyte = 1024
	gibibyte = 1 << 30
	// watched is for how long processes are observed to see how busy they are.
	watched = time.Second
	// ticksPerSecond is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on every architecture Go runs on (man 5 proc, man 7 time).
	ticksPerSecond = 100
	// busy is the share of a core from which a process is worth mentioning.
	busy = 0.05
)

// Describe says in one line what machine this is.
func (r Root) Describe() string {
	model := "unknown processor"
	if content, err := os.ReadFile(r.path("cpuinfo")); err == nil {
		model = valueOf(content, "model name", model)
	}
	memory := "unknown memory"
	if content, err := os.ReadFile(r.path("meminfo")); err == nil {
		if size, ok := kibibytes(valueOf(content, "MemTotal", "")); ok {
			memory = fmt.Sprintf("%.0f GiB", float64(size)/gibibyte)
		}
	}
	kernel := "unknown"
	if content, err := os.ReadFile(r.path("sys/kernel/osrelease")); err == nil {
		kernel = strings.TrimSpace(string(content))
	}
	return fmt.Sprintf("%d × %s, %s, %s %s, %s", runtime.NumCPU(), model, memory, runtime.GOOS, kernel, runtime.Version())
}

// Introduce says of a benchmark what it runs on, and beside what.
func (r Root) Introduce(ctx context.Context, out io.Writer) error {
	beside, err := r.Beside(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "machine: %s\nbeside: %s\n", r.Describe(), beside)
	return nil
}

// Beside says in one line what else runs: the load average and, from watching for a second, the busiest programs. It takes that second.
func (r Root) Beside(ctx context.Context) (string, error) {
	average, err := os.ReadFile(r.path("loadavg"))
	if err != nil {
		return "", fmt.Errorf("read the load average: %w", err)
	}
	before := r.ticks()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(watched):
	}
	load, _, _ := strings.Cut(string(average), " ")
	return fmt.Sprintf("load %s; busy: %s", load, busiest(before, r.ticks(), watched)), nil
}

// spent is the processor time that a process has used.
type spent struct {
	program string
	ticks   uint64
}

// ticks reads what all processes but this one have used. Processes that end meanwhile are left out.
func (r Root) ticks() map[int]spent {
	found := map[int]spent{}
	files, _ := filepath.Glob(r.path("[0-9]*/stat")) // the pattern is well-formed
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if one, ok := parseStat(string(content)); ok {
			found[pid] = one
		}
	}
	return found
}

// parseStat reads /proc/PID/stat: the name in parentheses may hold anything, user and system time are fields 14 and 15 (man 5 proc).
func parseStat(content string) (spent, bool) {
	open, end := strings.Index(content, "("), strings.LastIndex(content, ")")
	if open < 0 || end < open {
		return spent{}, false
	}
	fields := strings.Fields(content[end+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return spent{}, false
	}
	inUser, err := strconv.ParseUint(fields[user], 10, 64)
	if err != nil {
		return spent{}, false
	}
	inSystem, err := strconv.ParseUint(fields[system], 10, 64)
	if err != nil {
		return spent{}, false
	}
	return spent{program: content[open+1 : end], ticks: inUser + inSystem}, true
}

// busiest lists the programs, all processes of a name together, by their share of a core between two looks.
func busiest(before, after map[int]spent, between time.Duration) string {
	used := map[string]float64{}
	for pid, now := range after {
		if was := before[pid]; now.ticks >= was.ticks {
			used[now.program] += float64(now.ticks-was.ticks) / ticksPerSecond / between.Seconds()
		}
	}
	var programs []string
	for program, share := range used {
		if share >= busy {
			programs = append(programs, program)
		}
	}
	if len(programs) == 0 {
		return "nothing"
	}
	slices.SortFunc(programs, func(a, b string) int {
		return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a, b))
	})
	for i, program := range programs {
		programs[i] = fmt.Sprintf("%s %.0f %%", program, used[program]*100)
	}
	return strings.Join(programs, ", ")
}

// CPU is how much processor time a process has used since it began, its ended children apart. It counts in hundredths of a second.
func (r Root) CPU(pid int) (time.Duration, error) {
	content, err := os.ReadFile(r.path(strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	used, ok := parseStat(string(content))
	if !ok {
		return 0, fmt.Errorf("read the processor time of process %d: /proc has none of it: it is ending", pid)
	}
	return time.Duration(used.ticks) * time.Second / ticksPerSecond, nil
}

// Memory is what a process holds, in bytes (man 5 proc, /proc/PID/status).
type Memory struct {
	// Resident is what is in memory now (VmRSS): Anonymous is the process's own, the rest are pages of files, the program itself among them,
	// that the kernel can drop.
	Resident, Anonymous uint64
	// Peak is the most that Resident ever was (VmHWM).
	Peak uint64
}

// Memory reads what a process holds.
func (r Root) Memory(pid int) (Memory, error) {
	content, err := os.ReadFile(r.path(strconv.Itoa(pid), "status"))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	var memory Memory
	for key, into := range map[string]*uint64{"VmRSS": &memory.Resident, "RssAnon": &memory.Anonymous, "VmHWM": &memory.Peak} {
		size, ok := kibibytes(valueOf(content, key, ""))
		if !ok {
			return Memory{}, fmt.Errorf("read the memory of process %d: /proc has no %s of it: it is ending", pid, key)
		}
		*into = size
	}
	return memory, nil
}

// kibibytes reads a size as /proc writes it, "123 kB", which means KiB.
func kibibytes(text string) (size uint64, ok bool) {
	number, isSize := strings.CutSuffix(text, " kB")
	count, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
	return count * kibibyte, isSize && err == nil
}

// valueOf finds the first "key: value" line.
func valueOf(content []byte, key, otherwise string) string {
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}

func (r Root) path(parts ...string) string {
	return filepath.Join(append([]string{string(r)}, parts...)...)
}

// Child is a process that another one has started, the one with the lowest number.
func (r Root) Child(parent int) (int, error) {
	files, _ := filepath.Glob(r.path("[0-9]*/status")) // the pattern is well-formed
	lowest := 0
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		content, err := os.ReadFile(file)
		if err == nil && valueOf(content, "PPid", "") == strconv.Itoa(parent) && (lowest == 0 || pid < lowest) {
			lowest = pid
		}
	}
	if lowest == 0 {
		return 0, fmt.Errorf("look for a child of process %d: it has none", parent)
	}
	return lowest, nil
}
