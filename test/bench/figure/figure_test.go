package figure

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	twenty := make([]float64, 20)
	for i := range twenty {
		twenty[i] = float64(20 - i) // falling: percentiles sort for themselves
	}
	for name, story := range map[string]struct {
		values  []float64
		percent float64
		want    float64
	}{
		"one value is every percentile":                {[]float64{7}, 50, 7},
		"the median of an even number is the lower":    {[]float64{1, 2, 3, 4}, 50, 2},
		"the median of an odd number is in the middle": {[]float64{9, 1, 5}, 50, 5},
		"of twenty, one may exceed p95":                {twenty, 95, 19},
		"the hundredth is the largest":                 {twenty, 100, 20},
		"the zeroth is the smallest":                   {twenty, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Percentile(story.values, story.percent); got != story.want {
				t.Errorf("got %v, want %v", got, story.want)
			}
		})
	}
	if got := Percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("no values: got %v, want NaN: it must not look like a result", got)
	}
	if twenty[0] != 20 {
		t.Error("the values were put into another order")
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	Of(Milliseconds([]time.Duration{1500 * time.Microsecond, 3 * time.Millisecond})).Print(&out, "boot", "ms")
	Print(&out, "ready", Seconds([]time.Duration{12340 * time.Millisecond})[0], "s")
	Print(&out, "steady_writes", 0, "count")
	Print(&out, "grown", 1.049, "ratio")
	Print(&out, "checked", 1234.5, "objects/s")
	want := "figure boot_p50 2 ms\nfigure boot_p95 3 ms\nfigure boot_max 3 ms\nfigure ready 12.3 s\nfigure steady_writes 0 count\n" +
		"figure grown 1.05 ratio\nfigure checked 1234 objects/s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	Table(&out, [][]string{{"stage", "at"}, {"objects made", "0.1 s"}})
	if diff := cmp.Diff("  stage         at\n  objects made  0.1 s\n", out.String()); diff != "" {
		t.Error(diff)
	}
}
