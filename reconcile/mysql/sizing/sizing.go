// Package sizing chooses mysqld's settings by what a member is given: memory, CPU and a volume. MySQL's own defaults are made for a host of
// its own. docs/sizing.md has the rules with their reasons, and the tables.
package sizing

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Given is what one mysqld has. Zero means that it is not known.
type Given struct {
	// Memory is what its container may use, in bytes.
	Memory int64
	// CPU is what it may use, in thousandths of a CPU.
	CPU int64
	// Volume is the size of its volume, in bytes.
	Volume int64
}

// Settings are by name; values are as in a my.cnf.
type Settings map[string]string

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Tune returns the settings for a member. Where something is not known, MySQL's defaults stay in force.
func Tune(given Given) Settings { return TuneBeside(given, "") }

// Config renders a my.cnf. A release that does not know a setting ignores it: loose_ (manual, "Program Option Modifiers"). What stands
// after it wins, however it is spelled.
func (s Settings) Config() string {
	var text strings.Builder
	text.WriteString("[mysqld]\n")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&text, "loose_%s = %s\n", name, s[name])
	}
	return text.String()
}

// TuneBeside returns the settings for a member that go with what the text of a my.cnf names, which comes after them: some of ours would
// change what a choice of the user's means.
func TuneBeside(given Given, config string) Settings {
	asked, chosen := settingsIn(config), Settings{}
	chosen.byCPU(given.CPU)
	pool := chosen.byMemory(given.Memory, asked)
	chosen.byVolume(given.Volume, pool, asked)
	if Names(config, "innodb_log_file_size") || Names(config, "innodb_log_files_in_group") {
		// MySQL ignores both where this one is set (manual, "innodb_redo_log_capacity").
		delete(chosen, "innodb_redo_log_capacity")
	}
	return chosen
}

// Names reports whether the text of a my.cnf names a setting, however it is spelled there.
func Names(config, setting string) bool {
	_, named := settingsIn(config)[setting]
	return named
}

// settingsIn are the settings that the text of a my.cnf names, in the manual's spelling. Of one that it names twice the last counts.
func settingsIn(config string) Settings {
	found := Settings{}
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(line, "=")
		found[plainName(key)] = strings.TrimSpace(value)
	}
	return found
}

// plainName is a setting's name without what may stand before it: loose_ any number of times, and plugin_ once, since mysqld knows InnoDB's
// settings as those of a plugin, too.
func plainName(spelled string) string {
	name := strings.ReplaceAll(strings.TrimSpace(spelled), "-", "_")
	for strings.HasPrefix(name, "loose_") {
		name = strings.TrimPrefix(name, "loose_")
	}
	return strings.TrimPrefix(name, "plugin_")
}

// longestSize is more than anything has; what is larger counts as so much.
const longestSize = 1 << 62

// Size reads a size or a number as mysqld does, with K, M, G, T, P or E after it and in quotes or not (manual, "Using Options to Set
// Program Variables", "Using Option Files"); zero for anything else.
func Size(value string) int64 {
	value = strings.ToUpper(unquoted(strings.TrimSpace(value)))
	shift := 0
	if at := strings.IndexAny(value, suffixes); at >= 0 && at == len(value)-1 {
		shift = 10 * (1 + strings.IndexByte(suffixes, value[at]))
		value = value[:at]
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if number < 0 || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	if err != nil || number > longestSize>>shift {
		return longestSize
	}
	return number << shift
}

// suffixes each stand for 1024 times what the one before stands for.
const suffixes = "KMGTPE"

func unquoted(value string) string {
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(value, quote); ok && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return value
}

// mostCounted is more than anybody has, and can be counted with.
const mostCounted = 1 << 50

// number is what a setting says, at most so much; zero where it is not there or says no number.
func (s Settings) number(name string) int64 { return min(Size(s[name]), mostCounted) }

func (s Settings) set(name string, value int64) { s[name] = fmt.Sprint(value) }

// byCPU keeps threads to what the container has: MySQL counts the CPUs of the node. An I/O thread reserves 256 of the asynchronous requests
// that all processes of a node share (fs.aio-max-nr).
func (s Settings) byCPU(milli int64) {
	if milli == 0 {
		return
	}
	cpus := (milli + 999) / 1000
	ioThreads := between(2, cpus, 8)
	s["container_aware"] = "ON"
	s.set("innodb_read_io_threads", ioThreads)
	s.set("innodb_write_io_threads", ioThreads)
	s.set("innodb_purge_threads", choose[int64](cpus < 8, 1, 4))
	s["innodb_log_writer_threads"] = choose(cpus < 16, "OFF", "ON")
	s.set("replica_parallel_workers", between(4, 2*cpus, 64))
}

// byVolume bounds what grows on the volume beside the data, and sizes the redo log by the buffer pool.
func (s Settings) byVolume(volume, pool int64, asked Settings) {
	if volume == 0 {
		return
	}
	binlog := between(16*mib, powerOfTwo(volume/64), gib)
	s.set("max_binlog_size", binlog)
	// Files of the relay log are as large, unless they have a size of their own (manual, "max_relay_log_size"). The receiver could wait for
	// ever where the limit is below two of them ("relay_log_space_limit"): one is removed only once another has been begun.
	relay := min(cmp.Or(asked.number("max_relay_log_size"), asked.number("max_binlog_size"), binlog), gib)
	s.set("relay_log_space_limit", max(4*relay, volume/8))
	s.set("innodb_max_undo_log_size", between(64*mib, volume/32, gib))
	redo := min(between(100*mib, pool/4, 4*gib), volume/10)
	s.set("innodb_redo_log_capacity", max(8*mib, redo/mib*mib))
	s["innodb_temp_data_file_path"] = fmt.Sprintf("ibtmp1:12M:autoextend:max:%dM", between(256, volume/8/mib, mostTemporary))
}

// mostTemporary is the largest bound of ibtmp1, in MiB. InnoDB counts its pages in 32 bits.
const mostTemporary = 1 << 20

// TransactionLimit returns max_binlog_cache_size of a primary on a volume of so many bytes; 0 where its size is not known. It is no setting
// of a my.cnf: an applier obeys it too, and one that stops at a transaction that its primary took does not go on.
func TransactionLimit(volume int64) int64 {
	if volume == 0 {
		return 0
	}
	return between(256*mib, volume/8, 4*gib) / transactionUnit * transactionUnit
}

// transactionUnit is what MySQL rounds max_binlog_cache_size down to.
const transactionUnit = 4 * kib

func between(least, value, most int64) int64 { return min(max(least, value), most) }

func choose[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}

// powerOfTwo rounds down to one.
func powerOfTwo(value int64) int64 {
	rounded := int64(1)
	for rounded <= value/2 {
		rounded *= 2
	}
	return rounded
}
