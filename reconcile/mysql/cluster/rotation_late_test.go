package cluster

import (
	"testing"
	"time"
)

// TestCAIsTooLateForClients: the operator crashed right after it created a CA, and none ran for a week. Clients still get their time.
func TestCAIsTooLateForClients(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	client := r.bundle
	r.dies(stepBring)
	r.now = r.now.Add(8 * day)
	r.pass(6 * day)
	r.want(stepTrust, stepNote, stepNoteClients)
	if !r.trusts(client, r.pair) {
		t.Error("clients have had no time")
	}
	r.pass(3 * day)
	r.want(stepSign, stepForget, stepTrust)

	t.Log("it crashes right after it gave the members the CA, and before it recorded that")
	client = r.bundle
	r.dies(stepBring)
	r.bundle = r.kept.Bundle()
	r.now = r.now.Add(8 * day)
	r.pass(6 * day)
	r.want(stepNote, stepNoteClients)
	if !r.trusts(client, r.pair) {
		t.Error("clients have had no time")
	}
	r.pass(3 * day)
	r.want(stepSign, stepForget, stepTrust)

	t.Log("the Secret is lost, and the operator dies right after it made a CA: members get their time to learn of it")
	r.kept = nil
	r.dies(stepStart)
	r.now = r.now.Add(time.Hour)
	r.look()
	r.want(stepTrust, stepNote, stepNoteClients)
	if !r.told.Equal(r.now) {
		t.Errorf("members got the CA at %s, and %s is recorded", r.now, r.told)
	}
	r.read()
	r.works()
}
