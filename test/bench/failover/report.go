package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
)

// summary is what all rounds together say.
type summary struct {
	gaps                                        map[string][]float64
	rejoins, readGaps                           []float64
	violations, unchecked, unwritten            int
	stale, dual, falseFailovers, settled, total int
}

func summarised(rounds []round) summary {
	s := summary{gaps: map[string][]float64{}, total: len(rounds)}
	for i, one := range rounds {
		s.violations += len(one.findings.verdict.Violated)
		s.unchecked += len(one.findings.verdict.Unchecked)
		s.unwritten += len(one.findings.unwritten)
		s.stale += one.findings.stale
		s.dual += len(one.findings.dual)
		if one.isFalse() || i > 0 && isUnprovoked(rounds[i-1], one) {
			s.falseFailovers++
		}
		if !one.isSettled {
			continue
		}
		s.settled++
		s.rejoins = append(s.rejoins, one.rejoin.Seconds())
		s.gaps[one.fault.name] = append(s.gaps[one.fault.name], one.silent.length.Seconds())
		if one.fault.name == faultKill {
			s.readGaps = append(s.readGaps, one.findings.readGap.Seconds())
		}
	}
	return s
}

// isUnprovoked reports whether a member took over between two rounds, without a fault.
func isUnprovoked(former, next round) bool {
	return former.isSettled && next.before.leader != "" && (former.after.leader != next.before.leader || former.after.epoch != next.before.epoch)
}

// report prints the rounds, if there are any, and the figures.
func report(out io.Writer, faults []fault, rounds []round, load int) {
	if len(rounds) == 0 {
		return
	}
	fmt.Fprintln(out, "\nfaults in the order in which they were inflicted (s; the longest time without acknowledged writes, and when it began)")
	rows := make([][]string, 0, 1+len(rounds))
	rows = append(rows, []string{"fault", "of", "without writes", "begins after the fault", "next longest", "without reads", "rejoin", "leads afterwards", "epoch"})
	for _, one := range rounds {
		rows = append(rows, []string{
			one.fault.name, one.before.leader, seconds(one.silent.length), seconds(one.silent.after), seconds(one.further.length),
			seconds(one.findings.readGap), seconds(one.rejoin), one.after.leader, one.after.epoch,
		})
	}
	figure.Table(out, rows)
	fmt.Fprintln(out)
	summarised(rounds).print(out, faults, load)
}

// print prints the figures. Under a load, their names say so.
func (s summary) print(out io.Writer, faults []fault, load int) {
	suffix := ""
	if load > 0 {
		suffix = "_saturated"
	}
	for _, one := range faults {
		if gaps := s.gaps[one.name]; len(gaps) > 0 {
			name := "failover_" + strings.ReplaceAll(one.name, "-", "_") + suffix
			figure.Print(out, name+"_p50", figure.Percentile(gaps, 50), "s")
			figure.Print(out, name+"_p99", figure.Percentile(gaps, 99), "s")
		}
	}
	if len(s.readGaps) > 0 {
		figure.Print(out, "read_gap_p50", figure.Percentile(s.readGaps, 50), "s")
	}
	if len(s.rejoins) > 0 {
		figure.Print(out, "rejoin_p50", figure.Percentile(s.rejoins, 50), "s")
	}
	figure.Print(out, "rejoined_unaided", float64(s.settled)/float64(s.total), "ratio")
	figure.Print(out, "false_failovers", float64(s.falseFailovers), "count")
	figure.Print(out, "linearizability_violations", float64(s.violations), "count")
	figure.Print(out, "stale_reads_from_deposed", float64(s.stale), "count")
	figure.Print(out, "dual_primary_seen", float64(s.dual), "count")
}

// failure is an error if clients were told something wrong, or if a member took over without need.
func (s summary) failure() error {
	var failures []error
	for _, one := range []struct {
		count int
		what  string
	}{
		{s.violations, "histories of registers are not linearizable"},
		{s.unchecked, "histories of registers took too long to check: make fewer rounds at a time, or have fewer clients"},
		{s.unwritten, "reads returned values that no client wrote"},
		{s.falseFailovers, "times, a member took over or mysqld ended although the primary worked"},
	} {
		if one.count > 0 {
			failures = append(failures, fmt.Errorf("check what clients saw: %d %s; -out has the rounds", one.count, one.what))
		}
	}
	return errors.Join(failures...)
}

// announce prints a round when it is over.
func announce(out io.Writer, one round) {
	fmt.Fprintf(out, "%s s without writes, %s s until it was settled; %d operations on registers, %d registers violated\n",
		seconds(one.silent.length), seconds(one.rejoin), one.findings.operations, len(one.findings.verdict.Violated))
	for _, both := range one.findings.dual {
		fmt.Fprintf(out, "  %s after the fault: %s\n", both.from.Sub(one.at).Round(time.Millisecond), both)
	}
	if one.findings.stale > 0 {
		fmt.Fprintf(out, "  a client that stayed at the former primary read old rows %d times\n", one.findings.stale)
	}
	if one.isFalse() {
		fmt.Fprintf(out, "  a false failover: from %+v to %+v\n", one.before, one.after)
	}
}

func seconds(length time.Duration) string {
	return fmt.Sprintf("%.2f", length.Round(10*time.Millisecond).Seconds()) // rounded, so that there is no -0.00
}
