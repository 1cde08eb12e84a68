package transfer

import (
	"testing"
	"time"
)

func TestEndsThatClocksProveWrongAreNotBelieved(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct{ ended, made, want time.Time }{
		"a minute ago":                   {now.Add(-time.Minute), now.Add(-time.Hour), now.Add(-time.Minute)},
		"clocks differ a little":         {now.Add(time.Minute), now.Add(-time.Hour), now.Add(time.Minute)},
		"the clock was a year ahead":     {now.AddDate(1, 0, 0), now.Add(-time.Hour), now.Add(-time.Hour)},
		"the clock was a year behind":    {now.AddDate(-1, 0, 0), now.Add(-time.Hour), now.Add(-time.Hour)},
		"the clock was a minute behind":  {now.Add(-time.Minute), now.Add(-30 * time.Second), now.Add(-30 * time.Second)},
		"the clock is a year behind now": {now.AddDate(1, 0, 0), now.AddDate(1, 0, -1), time.Time{}},
		"it was behind then and is now":  {now.Add(-time.Minute), now.AddDate(1, 0, 0), time.Time{}},
	} {
		if got := PlausibleEnd(test.ended, test.made, now); !got.Equal(test.want) {
			t.Errorf("%s: it ended at %v, want %v", name, got, test.want)
		}
	}
}
