package replication

import "testing"

// TestWhatAFormerPrimaryShares: a former primary (B) follows another one, and has received what that made.
func TestWhatAFormerPrimaryShares(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		executed, retrieved, source string
		problem                     string
		want                        string
	}{
		"the primary has all":                          {executed: "A:1-9,B:1-3", source: "A:1-10,B:1-3", want: "B:1-3"},
		"a user has written to the member":             {executed: "A:1-9,B:1-4", source: "A:1-10,B:1-3", want: "B:1-3"},
		"the member gets back what it cut off":         {executed: "A:1-9", retrieved: "B:1-2", source: "A:1-10,B:1-3", want: "B:1-2"},
		"the primary does not answer":                  {executed: "A:1-9,B:1-3", problem: "no route", want: "B:7"},
		"the primary lacks what the one before it had": {executed: "A:1-9,B:1-3", source: "A:1-10", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local := Observed{
				Server: Server{ServerUUID: uuidB, Executed: gtids(t, test.executed), Channel: Channel{Retrieved: gtids(t, test.retrieved)}}, WasShared: gtids(t, "B:7"),
				Source: &Source{ServerUUID: uuidA, Executed: gtids(t, test.source), Err: test.problem},
			}
			if got := local.Shared(); !got.Equal(gtids(t, test.want)) {
				t.Errorf("it shares %s, want %s", got, test.want)
			}
		})
	}
}
