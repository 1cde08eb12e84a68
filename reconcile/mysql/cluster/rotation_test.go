package cluster

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

// TestCAIsReplacedWhileEverybodyWorks: two years pass, and the operator replaces the CA. A client that reads the bundle once a week always
// trusts the members.
func TestCAIsReplacedWhileEverybodyWorks(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	first := r.kept[0]
	client, learned := r.bundle, r.now
	for r.now.Before(first.Leaf.NotAfter) {
		r.now = r.now.Add(day)
		r.turn()
		if !r.trusts(client, r.pair) {
			t.Fatalf("at %s a client that learned the CAs at %s trusts no member", r.now, learned)
		}
		if r.now.Sub(learned) >= 5*day {
			client, learned = r.bundle, r.now
		}
	}
	// The operator renews certificates in between, as usual.
	r.steps = slices.DeleteFunc(r.steps, func(one step) bool { return one == stepSign })
	r.want(stepBring, stepTrust, stepNote, stepNoteClients, stepForget, stepTrust)
	if len(r.kept) != 1 || r.kept[0].Leaf.Equal(first.Leaf) || r.trusts(pki.Encode(first.Leaf.Raw), r.pair) {
		t.Error("the first CA is still in use at its end")
	}
}

// TestCARotationStepByStep asks for a new CA, and sees what each step waits for.
func TestCARotationStepByStep(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	r.pass(time.Hour)
	r.asked.before = r.now
	r.look()
	r.want(stepBring, stepTrust, stepNote, stepNoteClients)
	if r.last.waits != waitForClients || !r.last.until.Equal(r.now.Add(clientOverlap)) {
		t.Errorf("it waits for %q until %s", r.last.waits, r.last.until)
	}
	r.works()
	r.read("db-0", "db-1")
	r.works()
	began := r.now
	for r.now.Before(began.Add(clientOverlap)) {
		r.now = r.now.Add(time.Hour)
		r.look()
	}
	if r.last.waits != waitForMembers {
		t.Errorf("one member has not read the CAs to trust, and the rotation waits for %q", r.last.waits)
	}
	r.want()
	r.read()
	r.look()
	r.want(stepSign)
	r.works()
	r.read("db-0")
	r.works()
	r.read()
	r.now = r.now.Add(59 * time.Minute)
	r.look()
	if r.last.waits != waitToForget {
		t.Errorf("it waits for %q", r.last.waits)
	}
	r.want()
	r.pass(time.Hour)
	r.want(stepForget, stepTrust)
	r.pass(30 * day)
	r.want()
	if r.last.waits != "" || len(r.kept) != 1 {
		t.Errorf("it waits for %q, and there are %d CAs", r.last.waits, len(r.kept))
	}
}

// TestCARotationAndMembersThatAreAway: a member that is down delays nothing, because it reads the current files when it starts. The
// operator waits for a running member that does not read.
func TestCARotationAndMembersThatAreAway(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	r.members["db-2"].down = true
	r.asked.before = r.now.Add(time.Hour)
	r.pass(10 * day)
	r.want(stepBring, stepTrust, stepNote, stepNoteClients, stepSign, stepForget, stepTrust)
	r.members["db-2"].down = false
	r.read("db-2") // kubelet mounts the Secret as it is
	r.works()

	r.asked.before = r.now.Add(time.Hour)
	for range 10 {
		r.now = r.now.Add(day)
		r.look()
		r.read("db-0", "db-1")
		r.works()
	}
	r.want(stepBring, stepTrust, stepNote, stepNoteClients)

	t.Log("db-2 is away for so long that the operator must renew the members' certificate: with the CA that db-2 knows")
	for range 300 {
		r.now = r.now.Add(day)
		r.look()
		r.read("db-0", "db-1")
	}
	r.want(stepSign)
	r.works()

	t.Log("no member runs: nothing is taken for granted")
	for _, member := range r.members {
		member.down = true
	}
	r.look()
	if r.last.waits != waitForMembers {
		t.Errorf("it waits for %q", r.last.waits)
	}
}

// TestCAIsLost: the operator's Secret is gone. Members and clients continue to trust the same CA, and nothing restarts.
func TestCAIsLost(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	client, shown := r.bundle, r.pair
	r.kept = nil
	r.look()
	r.want(stepStart, stepTrust, stepNote, stepNoteClients)
	if !slices.Equal(shown.Certificate, r.pair.Certificate) {
		t.Error("the members' certificate was replaced at once")
	}
	if r.operatorReaches(r.members["db-0"]) {
		t.Error("this story proves nothing: the operator has kept the key")
	}
	r.read()
	r.works()
	r.pass(6 * day)
	if !r.trusts(client, r.pair) {
		t.Error("clients have had no time")
	}
	r.pass(3 * day)
	r.want(stepSign, stepForget, stepTrust)

	t.Log("the operator crashes right after it has created a CA: the next one continues")
	r.kept = nil
	s := r.situation()
	held, err := s.replace(stepStart, r.n, r.now)
	if err != nil {
		t.Fatal(err)
	}
	r.kept = held
	r.look()
	r.want(stepTrust, stepNote, stepNoteClients)
	r.read()
	r.works()

	t.Log("the members' Secret is lost as well: they get new files, under one CA")
	r.kept, r.bundle, r.pair = nil, nil, pki.Pair{}
	r.look()
	r.want(stepStart, stepSign)
	r.read()
	r.works()
}

// TestCAIsReplacedInTheMembersSecret: a client that may write Secrets there writes its own CA into it. The operator never trusts that CA.
func TestCAIsReplacedInTheMembersSecret(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	stranger, planted := signed(t, r.n, r.now)
	r.bundle, r.pair = pki.Encode(stranger.Leaf.Raw), planted
	r.look()
	r.want(stepSign)
	r.read()
	r.works()
	if verifies(r.bundle, stranger.Leaf, r.now, x509.ExtKeyUsageServerAuth) {
		t.Error("the stranger's CA is trusted")
	}
}

// TestCertificateIsDamagedInARotation: the CA that members and clients already trust signs the new certificate.
func TestCertificateIsDamagedInARotation(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	r.asked.before = r.now.Add(time.Second)
	r.now = r.now.Add(time.Minute)
	r.look()
	r.want(stepBring, stepTrust, stepNote, stepNoteClients)
	r.pair.Certificate = []byte("nonsense")
	r.look()
	r.want(stepSign)
	r.works()
	r.read()
	r.pass(9 * day)
	r.want(stepSign, stepForget, stepTrust)
}

// TestCAHasEnded: no operator ran for years.
func TestCAHasEnded(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	r.now = r.now.Add(children.AuthorityLife + day)
	r.look()
	r.want(stepStart, stepSign)
	r.read()
	r.works()
	r.pass(2 * time.Hour)
	r.want(stepForget, stepTrust)

	t.Log("the old CA ends while a rotation waits for a member that never answers")
	old := r.kept[0]
	r.asked.before = r.now.Add(time.Hour)
	r.now = r.now.Add(time.Hour)
	r.look()
	for r.now.Before(old.Leaf.NotAfter.Add(day)) {
		r.now = r.now.Add(day)
		r.look()
		r.read("db-0", "db-1")
		if !r.trusts(r.bundle, r.pair) {
			t.Fatalf("at %s no client can trust the members", r.now)
		}
	}
	if count := len(r.steps); count > 40 {
		t.Errorf("it took %d steps, which write Secrets", count)
	}
}

// TestCertificatesOfAClockThatIsPutRight: the operator's clock was ahead, and what it signed then is not valid yet.
func TestCertificatesOfAClockThatIsPutRight(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		age, ahead   time.Duration
		then, healed []step
	}{
		"it renews a certificate":    {240 * day, 60 * day, []step{stepSign}, []step{stepSign}},
		"it brings a new CA":         {700 * day, 60 * day, []step{stepBring, stepTrust, stepNote, stepNoteClients}, []step{stepStart, stepTrust, stepNote, stepNoteClients}},
		"it takes all CAs for ended": {day, children.AuthorityLife, []step{stepStart, stepSign}, []step{stepStart, stepSign, stepNote, stepNoteClients}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRotating(t)
			client := r.bundle
			r.now = r.now.Add(story.age)
			r.look()
			r.read()
			r.steps = nil
			r.now = r.now.Add(story.ahead)
			r.look()
			r.want(story.then...)
			r.read()
			r.now = r.now.Add(-story.ahead)
			r.look()
			r.want(story.healed...)
			r.read()
			r.works()
			if !r.trusts(client, r.pair) {
				t.Error("a client that learned the CAs before trusts no member")
			}
			r.pass(30 * day)
			if len(r.kept) != 1 || r.last.waits != "" {
				t.Errorf("there are %d CAs, and it waits for %q", len(r.kept), r.last.waits)
			}
		})
	}
}

// TestTwoOperatorsRotateOneCA: their clocks are an hour apart, they take turns, and there is one request.
func TestTwoOperatorsRotateOneCA(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{time.Hour, -time.Hour} {
		r := newRotating(t)
		r.now = r.now.Add(2 * time.Hour)
		r.asked.before = r.now
		for range 24 * 10 * 2 {
			r.now = r.now.Add(apart)
			r.turn()
			r.now = r.now.Add(-apart)
			r.turn()
			r.now = r.now.Add(30 * time.Minute)
		}
		r.want(stepBring, stepTrust, stepNote, stepNoteClients, stepSign, stepForget, stepTrust)
	}
}

// TestCAWasLeaked: a client that has its key must not be trusted for another week. Only clients must react quickly.
func TestCAWasLeaked(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	leaked, none := r.kept[0], time.Duration(0)
	r.asked = rotationRequest{before: r.now.Add(time.Second), overlap: &none}
	r.now = r.now.Add(time.Minute)
	for range 3 {
		r.look()
		r.works()
		r.read()
		r.works()
		r.now = r.now.Add(time.Minute)
	}
	r.want(stepBring, stepTrust, stepNote, stepNoteClients, stepSign, stepForget, stepTrust)
	for name, member := range r.members {
		if verifies(member.bundle, leaked.Leaf, r.now, x509.ExtKeyUsageAny) {
			t.Errorf("%s trusts the leaked CA", name)
		}
	}
}

// TestCARotationWaitsForItsConfigMap: the ConfigMap for clients cannot be written, and members continue to show what clients trust.
func TestCARotationWaitsForItsConfigMap(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	r.pass(time.Hour)
	r.asked.before, r.unpublished = r.now, true
	r.pass(30 * day)
	r.want(stepBring, stepTrust, stepNote)
	if message := r.last.message(r.n); r.last.waits != waitForClients || !strings.Contains(message, "is not in ConfigMap db-ca-cert yet") {
		t.Errorf("it waits for %q: %s", r.last.waits, message)
	}
	t.Log("from now on clients have their time, however late that is")
	r.unpublished = false
	r.pass(clientOverlap - time.Hour)
	r.want(stepNoteClients)
	r.pass(day)
	r.want(stepSign, stepForget, stepTrust)
}
