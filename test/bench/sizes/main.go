// Command sizes starts real mysqlds in memory control groups and on volumes of different sizes, and has as many clients as they allow read
// and write half as much again as their buffer pool holds. Each size is tried with the settings that members get (reconcile/mysql/sizing),
// and with those that they got before. It needs root, and leaves nothing there. docs/benchmarks.md says what each figure means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/program"
)

type options struct {
	sizes, volumes, rootfs string
	window                 time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.sizes, "sizes", "512Mi,1Gi,2200Mi,4Gi", "memory limits to try")
	flag.StringVar(&o.volumes, "volumes", "1Gi,4Gi", "volumes to try each with")
	flag.StringVar(&o.rootfs, "rootfs", ".dev/images/mysql-rootfs", "where mysqld is")
	flag.DurationVar(&o.window, "window", 2*time.Minute, "for how long clients read and write")
	flag.Parse()
	os.Exit(program.Run(context.Background(), "bench-sizes", func(ctx context.Context) error { return run(ctx, o, os.Stdout) }))
}

func run(ctx context.Context, o options, out io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("make control groups and mount volumes: this takes root")
	}
	if err := machine.Proc.Introduce(ctx, out); err != nil {
		return err
	}
	for size := range strings.SplitSeq(o.sizes, ",") {
		for volume := range strings.SplitSeq(o.volumes, ",") {
			memory, err := resource.ParseQuantity(size)
			if err != nil {
				return fmt.Errorf("read -sizes: %q: %w", size, err)
			}
			space, err := resource.ParseQuantity(volume)
			if err != nil {
				return fmt.Errorf("read -volumes: %q: %w", volume, err)
			}
			if err := compare(ctx, o, out, place{size + "_" + volume, memory.Value(), space.Value()}); err != nil {
				return fmt.Errorf("%s of memory, %s of disk: %w", size, volume, err)
			}
		}
	}
	return nil
}

const (
	poolName        = "innodb_buffer_pool_size"
	connectionsName = "max_connections"
	redoName        = "innodb_redo_log_capacity"
)

// place is what a mysqld has, in bytes.
type place struct {
	name           string
	memory, volume int64
}

// compare tries one size with both settings, on the same amount of data.
func compare(ctx context.Context, o options, out io.Writer, at place) error {
	tuned := sizing.Tune(sizing.Resources{Memory: at.memory, CPU: 2000, Volume: at.volume})
	data, err := dataFor(tuned, at.volume)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s: pool %s, %s connections, %d MiB of data\n", at.name, tuned[poolName], tuned[connectionsName], data>>20)
	seen := map[string]trial{}
	for _, way := range []struct {
		what     string
		settings sizing.Settings
	}{{"before", before(at.memory, tuned)}, {"now", tuned}} {
		found, err := try(ctx, o, at, data, way.settings)
		if err != nil {
			return fmt.Errorf("with the settings of %s: %w", way.what, err)
		}
		fmt.Fprintf(out, "  %-6s  %6.1f transactions/s, %d connections open, killed for memory %d times, %s%.0f MiB of anonymous memory at most\n",
			way.what, found.perSecond, found.connections, found.kills, found.end(), float64(found.peak)/(1<<20))
		seen[way.what] = found
	}
	now, former := seen["now"], seen["before"]
	figure.Print(out, "size_"+at.name+"_oom_kills", float64(now.kills), "count")
	figure.Print(out, "size_"+at.name+"_peak_share", float64(now.peak)/float64(at.memory), "ratio")
	if former.perSecond > 0 {
		figure.Print(out, "size_"+at.name+"_throughput_ratio", now.perSecond/former.perSecond, "ratio")
	}
	return nil
}

const (
	// reserved is the room on a volume for everything but data and the redo log, in bytes: undo, the doublewrite buffer, binary logs, and
	// the files of a new mysqld.
	reserved = 350 << 20
	// metadataShare is the part of a volume that ext4 needs for itself: one in 20.
	metadataShare = 20
)

// dataFor is half as much again as the pool holds, if the volume has room for it.
func dataFor(tuned sizing.Settings, volume int64) (int64, error) {
	pool, err := resource.ParseQuantity(tuned[poolName])
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", poolName, err)
	}
	redo, err := resource.ParseQuantity(tuned[redoName])
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", redoName, err)
	}
	return min(pool.Value()*3/2, volume-volume/metadataShare-redo.Value()-reserved), nil
}

// before are the settings that followed from the memory limit until members were sized. As many clients connect as now.
func before(memory int64, tuned sizing.Settings) sizing.Settings {
	former := sizing.Settings{connectionsName: tuned[connectionsName]}
	if memory/2 > poolChunk {
		former[poolName] = fmt.Sprint((memory/2 + poolChunk - 1) / poolChunk * poolChunk)
	}
	return former
}

// poolChunk is the default of innodb_buffer_pool_chunk_size, in bytes. mysqld rounds a pool up to whole chunks.
const poolChunk = 128 << 20
