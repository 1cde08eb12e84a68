package mysqlcluster

import (
	"testing"
	"time"
)

// TestCAIsTooLateForClients: the operator died right after it made a CA, and nobody looked for a week. Clients get their time all the same.
func TestCAIsTooLateForClients(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	client := r.bundle
	r.dies(stepBring)
	r.now = r.now.Add(8 * day)
	r.pass(6 * day)
	r.want(stepBring, stepTrust)
	if !r.trusts(client, r.pair) {
		t.Error("clients have had no time")
	}
	r.pass(3 * day)
	r.want(stepSign, stepForget, stepTrust)

	t.Log("the members' Secret cannot be written for days: CAs do not pile up")
	for range 10 {
		r.dies(stepBring)
		r.now = r.now.Add(day)
		if s := r.situation(); s.next(r.now).step != stepBring {
			t.Fatalf("the next step is %q", s.next(r.now).step)
		}
	}
	if len(r.kept) > 3 {
		t.Errorf("there are %d CAs", len(r.kept))
	}
	r.pass(9 * day)
	r.want(stepBring, stepTrust, stepSign, stepForget, stepTrust)

	t.Log("the Secret is lost, and the operator dies right after it made a CA: members get their time to learn of it")
	r.kept = nil
	r.dies(stepStart)
	r.now = r.now.Add(time.Hour)
	r.look()
	r.want(stepBring, stepTrust)
	if age := r.now.Sub(madeAt(r.kept[0].Leaf)); age > time.Second {
		t.Errorf("members are told of a CA that is %s old", age)
	}
	r.read()
	r.works()
}
