package replication

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAStoppedApplierIsStartedAgain: each story has a look every second. It says when an attempt was made.
func TestAStoppedApplierIsStartedAgain(t *testing.T) {
	t.Parallel()
	const error1205 = 1205
	stopped := func(second int) (executed string, number int) { return "A:1-10", error1205 }
	for name, test := range map[string]struct {
		looks func(second int) (executed string, number int)
		last  int
		want  []int
	}{
		"it runs":                   {func(int) (string, int) { return "A:1-10", 0 }, 100, nil},
		"later and later":           {stopped, 700, []int{10, 30, 70, 150, 310, 630}},
		"at least every half hour":  {stopped, 8000, []int{10, 30, 70, 150, 310, 630, 1270, 2550, 4350, 6150, 7950}},
		"an attempt takes its time": {func(second int) (string, int) { return "A:1-10", error1205 * (second / 12 % 2) }, 150, []int{22, 42, 84}},
		"it succeeds, and then fails again": {func(second int) (string, int) {
			if second > 10 && second < 20 {
				return "A:1-11", 0
			}
			return map[bool]string{true: "A:1-10", false: "A:1-11"}[second <= 10], error1205
		}, 40, []int{10, 30}},
		"another transaction fails": {func(second int) (string, int) {
			return map[bool]string{true: "A:1-10", false: "A:1-11"}[second <= 10], error1205
		}, 60, []int{10, 21, 41}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var memory ApplierMemory
			var tried []int
			began := time.Unix(1_785_553_445, 0)
			for second := range test.last + 1 {
				now := began.Add(time.Duration(second) * time.Second)
				executed, number := test.looks(second)
				memory = memory.Observe(now, Server{Executed: gtids(t, executed), Channel: Channel{SQLErrno: number}})
				if number != 0 && memory.IsDue(now) {
					memory = memory.Tried(now)
					tried = append(tried, second)
				}
			}
			if diff := cmp.Diff(test.want, tried); diff != "" {
				t.Error(diff)
			}
		})
	}
}
