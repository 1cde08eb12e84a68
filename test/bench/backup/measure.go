package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

const mebibyte = 1 << 20

// takeBackup makes an instance and waits for its end; it returns the time from applying it to its being complete, as a person sees it.
func (b *bench) takeBackup(ctx context.Context, name string, lines ...string) (time.Duration, error) {
	lines = append([]string{"cluster: " + source}, lines...)
	manifest := fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLBackupInstance\nmetadata: {name: %s}\nspec: {%s}\n", name, strings.Join(lines, ", "))
	began := time.Now()
	if _, err := b.kubectl.Apply(ctx, manifest, "--namespace", b.namespace); err != nil {
		return 0, err
	}
	err := b.watch(ctx, "mysqlbackupinstances/"+name, "{.status.phase}", func(phase string) bool { return phase == "Completed" || phase == "Failed" })
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	phase, err := b.get(ctx, "mysqlbackupinstances/"+name, `{.status.phase} {.status.conditions[?(@.type=="Ready")].message}`)
	if err == nil && !strings.HasPrefix(phase, "Completed") {
		err = fmt.Errorf("backup %s: %s", name, phase)
	}
	return took, err
}

// makeVolume has the volume for backups made by a backup, which it deletes: the folders of the dumps are there, too.
func (b *bench) makeVolume(ctx context.Context, _ *measured) error {
	if _, err := b.takeBackup(ctx, "volume", "deletionPolicy: Delete"); err != nil {
		return err
	}
	_, err := b.kubectl.Run(ctx, "delete", "mysqlbackupinstance", "volume", "--namespace", b.namespace)
	return err
}

// measureBackup takes a backup with nothing else at work.
func (b *bench) measureBackup(ctx context.Context, m *measured) error {
	watching, stop := context.WithCancel(ctx)
	var peak float64
	var done sync.WaitGroup
	done.Go(func() { peak = watchMemory(watching, "backup") })
	took, err := b.takeBackup(ctx, "first")
	stop()
	done.Wait()
	if err != nil {
		return err
	}
	if peak == 0 {
		return fmt.Errorf("the backup's process was not seen on this machine: its memory cannot be told")
	}
	m.backup, m.memory = took.Seconds(), peak
	for path, value := range map[string]*float64{"{.status.dataSize}": &m.mebibytes, "{.status.size}": &m.backupStored} {
		text, err := b.get(ctx, "mysqlbackupinstances/first", path)
		if err != nil {
			return err
		}
		bytes, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		*value = bytes / mebibyte
	}
	m.stages, err = b.stages(ctx, "first", took)
	return err
}

// stage is a part of a backup's time, in seconds.
type stage struct {
	name    string
	seconds float64
}

// stages are what a backup's Pod says that its time went for. All the rest of what it took is Kubernetes' and the operator's: until the
// program in its Pod begins, and from its end until the status says so.
func (b *bench) stages(ctx context.Context, name string, took time.Duration) ([]stage, error) {
	found := []stage{{name: "start", seconds: took.Seconds()}}
	for _, part := range []string{"wait", "copy", "rest", "upload", "finish"} {
		text, err := b.get(ctx, "mysqlbackupinstances/"+name, "{.status.stages."+part+"}")
		if err != nil {
			return nil, err
		}
		span, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("status.stages.%s: %w", part, err)
		}
		found = append(found, stage{part, span.Seconds()})
		found[0].seconds -= span.Seconds()
	}
	return found, nil
}

// measureRestore makes a cluster of one from the backup.
func (b *bench) measureRestore(ctx context.Context, m *measured) error {
	began := time.Now()
	if err := b.apply(ctx, "restored", 1, "fromBackup: first"); err != nil {
		return err
	}
	if err := b.watch(ctx, "mysqlclusters/restored", "{.status.restore.phase}", func(phase string) bool { return phase == "Completed" }); err != nil {
		return err
	}
	m.restoreData = time.Since(began).Seconds()
	if err := b.ready(ctx, "restored", 1); err != nil {
		return err
	}
	m.restore = time.Since(began).Seconds()
	if err := b.compare(ctx, m, "restored"); err != nil {
		return err
	}
	return b.remove(ctx, "restored")
}

// compare makes certain that what was restored is what was there, by the number of rows: a benchmark of something else would be worth
// nothing.
func (b *bench) compare(ctx context.Context, m *measured, cluster string) error {
	db, err := b.open(ctx, cluster, cluster)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := rowsOf(ctx, db)
	if err == nil && rows != m.rows {
		err = fmt.Errorf("%s has %s rows, the source had %s", cluster, rows, m.rows)
	}
	return err
}

// watchMemory looks for processes of protocol.Program with a subcommand until the context ends, and returns the most memory that one of
// them ever had resident, in MiB.
func watchMemory(ctx context.Context, subcommand string) float64 {
	peak := 0.0
	for {
		select {
		case <-ctx.Done():
			return peak
		case <-time.After(100 * time.Millisecond):
		}
		entries, _ := filepath.Glob("/proc/[0-9]*")
		for _, entry := range entries {
			command, _ := os.ReadFile(entry + "/cmdline")
			words := strings.Split(string(command), "\x00")
			if len(words) < 2 || filepath.Base(words[0]) != protocol.Program || words[1] != subcommand {
				continue
			}
			peak = max(peak, residentPeak(entry))
		}
	}
}

// residentPeak is VmHWM of /proc/PID/status (proc_pid_status(5)), in MiB.
func residentPeak(process string) float64 {
	status, _ := os.ReadFile(process + "/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kibibytes, _ := strconv.ParseFloat(fields[0], 64)
	return kibibytes / 1024
}
