// Package sizing chooses mysqld's settings from a member's memory, CPU and volume. MySQL's own defaults assume a dedicated host.
// docs/sizing.md has the rules with their reasons, and the tables.
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

// Resources is what one mysqld has. Zero means unknown.
type Resources struct {
	// Memory is the memory limit of its container, in bytes.
	Memory int64
	// CPU is the CPU limit of its container, in thousandths of a CPU.
	CPU int64
	// Volume is the size of its volume, in bytes.
	Volume int64
}

// Settings maps names to values as in a my.cnf.
type Settings map[string]string

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Tune returns the settings for a member. If something is unknown, MySQL's defaults stay in force.
func Tune(given Resources) Settings { return TuneWithConfig(given, "") }

// Config renders a my.cnf. The prefix loose_ makes a release ignore a setting that it does not know (manual, "Program Option Modifiers").
// Settings that follow in the file win, however they are spelled.
func (s Settings) Config() string {
	var text strings.Builder
	text.WriteString("[mysqld]\n")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&text, "loose_%s = %s\n", name, s[name])
	}
	return text.String()
}

// TuneWithConfig returns the settings for a member that fit the user's my.cnf, which follows them in the file: some of ours would change
// the meaning of a setting that the user chooses.
func TuneWithConfig(given Resources, config string) Settings {
	asked, chosen := settingsIn(config), Settings{}
	chosen.byCPU(given.CPU)
	pool := chosen.byMemory(given.Memory, asked)
	chosen.byVolume(given.Volume, pool, asked)
	if HasSetting(config, "innodb_log_file_size") || HasSetting(config, "innodb_log_files_in_group") {
		// MySQL ignores both if this one is set (manual, "innodb_redo_log_capacity").
		delete(chosen, "innodb_redo_log_capacity")
	}
	return chosen
}

// HasSetting reports whether the text of a my.cnf names a setting, however it is spelled there.
func HasSetting(config, setting string) bool {
	_, named := settingsIn(config)[setting]
	return named
}

// settingsIn returns the settings that the text of a my.cnf names, in the manual's spelling. If it names one twice, the last one counts.
func settingsIn(config string) Settings {
	found := Settings{}
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(line, "=")
		found[plainName(key)] = strings.TrimSpace(value)
	}
	return found
}

// plainName returns a setting's name without its prefixes: loose_ any number of times, and plugin_ once, because mysqld also knows InnoDB's
// settings as those of a plugin.
func plainName(spelled string) string {
	name := strings.ReplaceAll(strings.TrimSpace(spelled), "-", "_")
	for strings.HasPrefix(name, "loose_") {
		name = strings.TrimPrefix(name, "loose_")
	}
	return strings.TrimPrefix(name, "plugin_")
}

// longestSize is more than any machine has. Larger sizes count as this one.
const longestSize = 1 << 62

// Size parses a size or a number as mysqld does, with or without a suffix K, M, G, T, P or E and quotes (manual, "Using Options to Set
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

// suffixes each stand for 1024 times the one before.
const suffixes = "KMGTPE"

func unquoted(value string) string {
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(value, quote); ok && strings.HasSuffix(inner, quote) {
			return strings.TrimSuffix(inner, quote)
		}
	}
	return value
}

// mostCounted is more than any machine has, and small enough to calculate with.
const mostCounted = 1 << 50

// number is the value of a setting, at most mostCounted; zero if the setting is missing or not a number.
func (s Settings) number(name string) int64 { return min(Size(s[name]), mostCounted) }

func (s Settings) set(name string, value int64) { s[name] = fmt.Sprint(value) }

// byCPU limits the number of threads to the container's CPUs: MySQL counts the CPUs of the node. An I/O thread reserves 256 of the
// asynchronous requests that all processes of a node share (fs.aio-max-nr).
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
	s.set(settingWorkers, between(leastWorkers, 2*cpus, mostWorkers)) // unless the memory is known
}

// byVolume limits what grows on the volume in addition to the data, and sizes the redo log by the buffer pool.
func (s Settings) byVolume(volume, pool int64, asked Settings) {
	if volume == 0 {
		return
	}
	binlog := between(16*mib, powerOfTwo(volume/64), gib)
	s.set("max_binlog_size", binlog)
	// Files of the relay log have the same size unless max_relay_log_size is set (manual, "max_relay_log_size"). With a limit of less than
	// two files, the receiver could wait indefinitely ("relay_log_space_limit"): MySQL removes a file only once the next one has begun.
	relay := min(cmp.Or(asked.number("max_relay_log_size"), asked.number("max_binlog_size"), binlog), gib)
	s.set("relay_log_space_limit", max(4*relay, volume/8))
	s.set("innodb_max_undo_log_size", between(64*mib, volume/32, gib))
	redo := min(between(100*mib, pool/4, 4*gib), volume/10)
	s.set("innodb_redo_log_capacity", max(8*mib, redo/mib*mib))
	s["innodb_temp_data_file_path"] = fmt.Sprintf("ibtmp1:12M:autoextend:max:%dM", between(256, volume/8/mib, mostTemporary))
}

// mostTemporary is the largest limit of ibtmp1, in MiB. InnoDB counts its pages in 32 bits.
const mostTemporary = 1 << 20

// TransactionLimit returns max_binlog_cache_size of a primary on a volume of this size, in bytes; 0 if the size is unknown. It is not a
// setting of a my.cnf, because it also limits an applier: one that stops at a transaction that its primary accepted does not continue.
func TransactionLimit(volume int64) int64 {
	if volume == 0 {
		return 0
	}
	return between(256*mib, volume/8, 4*gib) / transactionUnit * transactionUnit
}

// transactionUnit is the unit to which MySQL rounds max_binlog_cache_size down.
const transactionUnit = 4 * kib

func between(least, value, most int64) int64 { return min(max(least, value), most) }

func choose[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}

// powerOfTwo rounds down to a power of two.
func powerOfTwo(value int64) int64 {
	rounded := int64(1)
	for rounded <= value/2 {
		rounded *= 2
	}
	return rounded
}
