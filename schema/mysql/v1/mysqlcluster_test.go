package v1

import (
	"encoding/json"
	"testing"
	"time"
)

func TestWhatThePrimaryDoesWithoutReplicas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		asked   WhenReplicasLost
		members int
		want    WhenReplicasLost
	}{
		{"", 1, Continue}, {"", 2, Continue}, {"", 3, Block}, {"", 9, Block}, {Continue, 3, Continue}, {Block, 2, Block},
	} {
		if got := (Durability{WhenReplicasLost: test.asked}).For(test.members); got != test.want {
			t.Errorf("%q with %d members: %s, want %s", test.asked, test.members, got, test.want)
		}
	}
}

// TestTimesAreReadWithAnyPrecision: another client may have written them in whole seconds.
func TestTimesAreReadWithAnyPrecision(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 10, 0, 0, 123_456_789, time.UTC)
	for text, want := range map[string]time.Time{
		`"2026-11-20T10:00:00Z"`:        at.Truncate(time.Second),
		`"2026-11-20T11:00:00.5+01:00"`: at.Truncate(time.Second).Add(time.Second / 2),
		`"2026-11-20T10:00:00.123456Z"`: at.Truncate(time.Microsecond),
	} {
		var takeover Takeover
		if err := json.Unmarshal([]byte(`{"startTime": `+text+`}`), &takeover); err != nil || !takeover.StartTime.Time.Equal(want) {
			t.Errorf("%s is %s (%v)", text, takeover.StartTime, err)
		}
	}
	if text, err := json.Marshal(Takeover{StartTime: NewMicroTime(at)}); err != nil || string(text) != `{"epoch":0,"from":"","startTime":"2026-11-20T10:00:00.123456Z"}` {
		t.Errorf("%s (%v)", text, err)
	}
	behind := NewMicroTime(at.Add(-time.Minute))
	if text := (Takeover{StartTime: NewMicroTime(at), CompletionTime: &behind}).Durations(); text != "" {
		t.Errorf("a clock that is behind: %q", text)
	}
}
