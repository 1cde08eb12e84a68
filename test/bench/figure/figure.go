// Package figure is how benchmarks report: each result as a line that programs read, `figure NAME VALUE UNIT`, and tables for people.
// Nothing here passes or fails: a time says as much about the machine and what else runs on it as about the code.
package figure

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes one result. Values are printed with as many decimals as their unit is worth: counts with none.
func Print(out io.Writer, name string, value float64, unit string) {
	decimals := 1
	switch unit {
	case "count", "ms", "objects/s":
		decimals = 0
	case "ratio", "/s":
		decimals = 2
	}
	fmt.Fprintf(out, "figure %s %s %s\n", name, strconv.FormatFloat(value, 'f', decimals, 64), unit)
}

// Percentile returns the smallest of the values that at least percent of them do not exceed (nearest rank). It is NaN for no values.
func Percentile(values []float64, percent float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Spread is what to know of repeated measurements.
type Spread struct{ P50, P95, Max float64 }

// Of summarises values.
func Of(values []float64) Spread {
	return Spread{P50: Percentile(values, 50), P95: Percentile(values, 95), Max: Percentile(values, 100)}
}

// Print writes the three as NAME_p50, NAME_p95 and NAME_max.
func (s Spread) Print(out io.Writer, name, unit string) {
	Print(out, name+"_p50", s.P50, unit)
	Print(out, name+"_p95", s.P95, unit)
	Print(out, name+"_max", s.Max, unit)
}

// Milliseconds and Seconds are durations as values.
func Milliseconds(durations []time.Duration) []float64 { return in(time.Millisecond, durations) }

// Seconds is Milliseconds in another unit.
func Seconds(durations []time.Duration) []float64 { return in(time.Second, durations) }

func in(unit time.Duration, durations []time.Duration) []float64 {
	values := make([]float64, 0, len(durations))
	for _, duration := range durations {
		values = append(values, float64(duration)/float64(unit))
	}
	return values
}

// Table writes rows in columns, the first row being the head.
func Table(out io.Writer, rows [][]string) {
	writer := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(writer, "  "+strings.Join(row, "\t"))
	}
	_ = writer.Flush() // Flush fails only if out does, and then the tables have no reader
}
