package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// bucket is one of a histogram: how many values were at most so high.
type bucket struct{ highest, count float64 }

// durations are the buckets of how long passes over MySQLClusters took, in order.
func durations(all map[string]float64) []bucket {
	const begins, ends = `mysql_operator_reconcile_duration_seconds_bucket{kind="MySQLCluster",le="`, `"}`
	found := make([]bucket, 0, len(all))
	for series, count := range all {
		text, isBucket := strings.CutPrefix(series, begins)
		text, whole := strings.CutSuffix(text, ends)
		if highest, err := strconv.ParseFloat(text, 64); isBucket && whole && err == nil {
			found = append(found, bucket{highest, count})
		}
	}
	slices.SortFunc(found, func(a, b bucket) int {
		if a.highest < b.highest {
			return -1
		}
		return 1
	})
	return found
}

// quantile is below which a share of the values was that came between two looks at a histogram, as histogram_quantile of Prometheus has it:
// as if the values were spread evenly within a bucket. It is NaN where none came.
func quantile(share float64, before, after []bucket) float64 {
	came := slices.Clone(after)
	for i := range came {
		if i < len(before) {
			came[i].count -= before[i].count
		}
	}
	if len(came) == 0 || came[len(came)-1].count == 0 {
		return math.NaN()
	}
	rank := share * came[len(came)-1].count
	lowest, below := 0.0, 0.0
	for _, one := range came {
		if one.count >= rank {
			if math.IsInf(one.highest, 1) || one.count == below {
				return lowest
			}
			return lowest + (one.highest-lowest)*(rank-below)/(one.count-below)
		}
		lowest, below = one.highest, one.count
	}
	return lowest
}
