package protocol

import (
	"strings"
	"testing"
)

func TestOutcomeFitsIntoATerminationMessage(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-99999999,", 200)
	tests := map[string]struct {
		outcome     Outcome
		keepsGTIDs  bool
		leastToSay  int
		leftOutSaid bool
	}{
		"as usual":                            {outcome: Outcome{Reason: ReasonCompleted, GTIDExecuted: "a:1-9", Message: "fine"}, keepsGTIDs: true, leastToSay: 4},
		"a long message":                      {outcome: Outcome{Reason: ReasonCopyFailed, Message: strings.Repeat("ü\"", 9000)}, keepsGTIDs: true, leastToSay: 512},
		"more GTIDs than fit":                 {outcome: Outcome{Reason: ReasonCompleted, GTIDExecuted: many, Message: "fine"}, leastToSay: 4, leftOutSaid: true},
		"a long message and as many":          {outcome: Outcome{Reason: ReasonCompleted, GTIDExecuted: many, Message: strings.Repeat("<long>", 3000)}, leastToSay: 300, leftOutSaid: true},
		"GTIDs that just about fit":           {outcome: Outcome{Reason: ReasonCompleted, GTIDExecuted: many[:3900], Message: "fine"}, keepsGTIDs: true, leastToSay: 4},
		"with a long message they do not fit": {outcome: Outcome{Reason: ReasonCompleted, GTIDExecuted: many[:3900], Message: strings.Repeat("long ", 300)}, leastToSay: 500, leftOutSaid: true},
	}
	for name, test := range tests {
		content, err := test.outcome.Encode()
		if err != nil || len(content) > maxMessage {
			t.Fatalf("%s: %d bytes, %v", name, len(content), err)
		}
		read, ok := ReadOutcome(string(content))
		if !ok || read.Reason != test.outcome.Reason || len(read.Message) < test.leastToSay || !strings.HasPrefix(test.outcome.Message, read.Message) {
			t.Errorf("%s: read %v %s %q", name, ok, read.Reason, read.Message)
		}
		if (read.GTIDExecuted == test.outcome.GTIDExecuted) != test.keepsGTIDs || read.GTIDsLeftOut != test.leftOutSaid {
			t.Errorf("%s: %d of %d bytes of GTIDs, left out: %v", name, len(read.GTIDExecuted), len(test.outcome.GTIDExecuted), read.GTIDsLeftOut)
		}
	}
	for _, message := range []string{"", "panic: no", "{}", `{"reason":""}`, `[1]`} {
		if _, ok := ReadOutcome(message); ok {
			t.Errorf("%q is taken for an outcome", message)
		}
	}
}
