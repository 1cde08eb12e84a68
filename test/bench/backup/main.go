// Command backup measures backups and restores of a data set of 6 GiB beside what people use instead, all in one run on one machine: a
// plain copy of the same files through the same compressor, which is the limit; mysqldump; mydumper. And what a backup costs the clients
// that are at work meanwhile. It uses the cluster that make names, a namespace of its own, and leaves nothing there.
// docs/benchmarks.md says what each figure means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/program"
)

// options say how much to measure.
type options struct {
	mebibytes, rounds int
	window            time.Duration
	rootfs            string
	backupsOnly       bool
}

func main() {
	var o options
	flag.IntVar(&o.mebibytes, "size", 6144, "size of the data set in MiB")
	flag.IntVar(&o.rounds, "rounds", 3, "backups of each way beside which the clients' throughput is measured; 0 leaves that out")
	flag.DurationVar(&o.window, "window", 20*time.Second, "how long throughput without a backup is measured before and after each of them")
	flag.StringVar(&o.rootfs, "rootfs", ".dev/images/mysql-rootfs", "where MySQL's own client programs are")
	flag.BoolVar(&o.backupsOnly, "backups-only", false, "leave out whatever restores")
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-backup", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

// measured is how long each way took, in seconds, for the same data. All three ways of restoring are from applying a cluster to its being
// there with the data.
type measured struct {
	rows                                       string
	emptyCluster                               float64
	mebibytes                                  float64
	limit, backup, mysqldump, mydumper         float64
	restore, mysqlRestore, myloader            float64
	restoreData                                float64
	clientCost, clientCostFast                 []float64 // percent
	besideClients, besideClientsFast           []float64
	stages                                     []stage
	memory                                     float64 // MiB
	backupStored, mysqldumpStored, limitStored float64 // MiB
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.mebibytes < 1 || o.rounds < 0 {
		return errors.New("read flags: there must be data, and rounds cannot be negative")
	}
	b, err := setUp(ctx, o, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.tearDown(context.WithoutCancel(ctx))) }()
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	var m measured
	for _, step := range b.steps() {
		began := time.Now()
		fmt.Fprintf(out, "%s … ", step.what)
		if err := step.do(ctx, &m); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Fprintf(out, "%.1f s\n", time.Since(began).Seconds())
	}
	report(out, m)
	return nil
}

// step is a part of the run.
type step struct {
	what string
	do   func(context.Context, *measured) error
}

func (b *bench) steps() []step {
	backups := []step{
		{"fills the source cluster", b.fill},
		{"copies the files through the compressor", b.measureLimit},
		{"makes the volume for backups, with a backup", b.makeVolume},
		{"takes a backup", b.measureBackup},
		{"dumps with mysqldump", b.measureMysqldump},
		{"dumps with mydumper", b.measureMydumper},
		{"takes backups while clients are at work", b.measureClients},
	}
	if b.options.backupsOnly {
		return backups
	}
	return slices.Concat(backups, []step{
		{"gives the source's disk space free", b.removeSource},
		{"restores the backup", b.measureRestore},
		{"makes a cluster and loads mysqldump's file with mysql", b.measureMysql},
		{"makes a cluster and loads mydumper's files with myloader", b.measureMyloader},
	})
}

// report prints what was measured: a way of restoring that was left out took no time.
func report(out io.Writer, m measured) {
	fmt.Fprintf(out, "\n%.0f MiB of data files\n", m.mebibytes)
	figure.Table(out, m.table())
	fmt.Fprintln(out)
	figure.Print(out, "backup_rate", m.mebibytes/m.backup, "MiB/s")
	figure.Print(out, "backup_vs_limit", m.limit/m.backup, "ratio")
	figure.Print(out, "backup_vs_mysqldump", m.mysqldump/m.backup, "ratio")
	figure.Print(out, "backup_vs_mydumper", m.mydumper/m.backup, "ratio")
	for _, one := range m.stages {
		figure.Print(out, "backup_seconds_"+one.name, one.seconds, "s")
	}
	figure.Print(out, "backup_memory", m.memory, "MiB")
	if len(m.clientCost) > 0 {
		fmt.Fprintf(out, "clients' cost of each backup, in percent: %.1f; at full speed: %.1f\n", m.clientCost, m.clientCostFast)
		figure.Print(out, "backup_client_cost", figure.Percentile(m.clientCost, 50), "percent")
		figure.Print(out, "backup_client_cost_fast", figure.Percentile(m.clientCostFast, 50), "percent")
	}
	if m.restore > 0 {
		fmt.Fprintf(out, "of all ways of restoring, the new cluster alone takes %.1f s\n", m.emptyCluster)
		figure.Print(out, "restore_rate", m.mebibytes/m.restore, "MiB/s")
		figure.Print(out, "restore_seconds_data", m.restoreData, "s")
		figure.Print(out, "restore_seconds_member", m.restore-m.restoreData, "s")
		figure.Print(out, "restore_vs_mysqldump", m.mysqlRestore/m.restore, "ratio")
		figure.Print(out, "restore_vs_myloader", m.myloader/m.restore, "ratio")
	}
}

func (m measured) table() [][]string {
	rows := [][]string{{"", "s", "MiB/s", "stored MiB"}}
	row := func(name string, seconds, stored float64) {
		text := ""
		if stored > 0 {
			text = fmt.Sprintf("%.0f", stored)
		}
		if seconds > 0 {
			rows = append(rows, []string{name, fmt.Sprintf("%.1f", seconds), fmt.Sprintf("%.0f", m.mebibytes/seconds), text})
		}
	}
	row("plain copy, same compressor", m.limit, m.limitStored)
	row("backup", m.backup, m.backupStored)
	row("mysqldump", m.mysqldump, m.mysqldumpStored)
	row("mydumper", m.mydumper, 0)
	if len(m.clientCost) > 0 {
		row("backup beside clients", figure.Percentile(m.besideClients, 50), 0)
		row("the same at full speed", figure.Percentile(m.besideClientsFast, 50), 0)
	}
	row("restore, apply to Ready", m.restore, 0)
	row("new cluster, mysql, from mysqldump", m.mysqlRestore, 0)
	row("new cluster, myloader", m.myloader, 0)
	return rows
}
