package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

const day = 24 * time.Hour

// rotating is a cluster with its certificates: what the operator keeps, what it gives to the members, and what they have read of it.
type rotating struct {
	t                 *testing.T
	n                 children.Names
	now               time.Time
	kept              agent.Authorities
	told, clientsTold time.Time
	bundle            []byte
	pair              pki.Pair
	asked             rotationRequest
	members           map[string]*readingMember
	// unpublished reports that the ConfigMap for clients cannot be written.
	unpublished bool
	// steps are all steps that were taken.
	steps []step
	last  nextStep
}

// readingMember is a member with the files that it has read; it reads none while it is down.
type readingMember struct {
	down   bool
	bundle []byte
	pair   pki.Pair
}

// newRotating returns a new cluster of three.
func newRotating(t *testing.T) *rotating {
	t.Helper()
	r := &rotating{t: t, n: children.Names{Namespace: "shop", Cluster: "db"}, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), members: map[string]*readingMember{}}
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		r.members[name] = &readingMember{}
	}
	r.look()
	r.read()
	r.want(stepStart, stepSign)
	return r
}

// look does what the operator does in one pass.
func (r *rotating) look() {
	r.t.Helper()
	for range maxSteps {
		s := r.situation()
		if r.last = s.next(r.now); r.last.step == stepKeep {
			return
		}
		r.steps = append(r.steps, r.last.step)
		switch r.last.step {
		case stepTrust, stepSign:
			r.bundle = r.kept.Bundle()
			if r.last.issuer != nil {
				r.pair = r.must(children.NewMemberCertificate(r.n, r.last.issuer, r.now))
			}
		case stepNote:
			r.told = r.now
		case stepNoteClients:
			r.clientsTold = r.now
		case stepKeep, stepStart, stepBring, stepForget:
			held, err := s.replace(r.last.step, r.n, r.now)
			if err != nil {
				r.t.Fatal(err)
			}
			data, err := held.Data()
			if err != nil {
				r.t.Fatal(err)
			}
			if r.kept, err = agent.ReadAuthorities(data); err != nil {
				r.t.Fatal(err)
			}
			r.told, r.clientsTold = time.Time{}, time.Time{}
		}
	}
	r.t.Fatalf("the operator does not come to an end: %v", r.steps)
}

// dies simulates an operator that crashes right after it has written the CAs of a step.
func (r *rotating) dies(after step) {
	r.t.Helper()
	held, err := r.situation().replace(after, r.n, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	r.kept, r.told, r.clientsTold = held, time.Time{}, time.Time{}
}

func (r *rotating) must(made pki.Pair, err error) pki.Pair {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

func (r *rotating) situation() situation {
	s := situation{authorities: r.kept, membersHaveCASince: r.told, clientsHaveCASince: r.clientsTold, bundle: r.bundle, asked: r.asked, inUse: r.inUse(), published: !r.unpublished}
	s.leaf, s.fits = children.ReadMemberCertificate(r.n, r.pair)
	if trusted, err := pki.ReadCertificates(r.bundle); err == nil && s.leaf != nil && len(r.kept) == 0 {
		s.known = pki.Issuer(s.leaf, trusted)
	}
	return s
}

// inUse reports whether every running member has read what it was given.
func (r *rotating) inUse() bool {
	running := 0
	for _, member := range r.members {
		if member.down {
			continue
		}
		running++
		if agent.TLSDigest(member.bundle, member.pair.Certificate) != agent.TLSDigest(r.bundle, r.pair.Certificate) {
			return false
		}
	}
	return running > 0
}

// read makes members read what they were given: all running ones if none is named.
func (r *rotating) read(names ...string) {
	for name, member := range r.members {
		if !member.down && (len(names) == 0 || slices.Contains(names, name)) {
			member.bundle, member.pair = r.bundle, r.pair
		}
	}
}

// pass lets time pass. Every hour, the operator looks and members read.
func (r *rotating) pass(length time.Duration) {
	r.t.Helper()
	for end := r.now.Add(length); r.now.Before(end); {
		r.now = r.now.Add(min(time.Hour, end.Sub(r.now)))
		r.turn()
	}
}

// turn makes the operator look once and, later, members read once.
func (r *rotating) turn() {
	r.t.Helper()
	before := len(r.steps)
	r.look()
	if len(r.steps) > before {
		r.works()
	}
	r.read()
	if len(r.steps) > before {
		r.works()
	}
}

// want fails the test unless these steps were taken since the last call.
func (r *rotating) want(steps ...step) {
	r.t.Helper()
	if !slices.Equal(r.steps, steps) {
		r.t.Errorf("at %s the steps were %v, want %v", r.now, r.steps, steps)
	}
	r.steps = nil
}

// works fails the test unless running members reach each other, and the operator reaches them.
func (r *rotating) works() {
	r.t.Helper()
	for name, member := range r.members {
		for other, peer := range r.members {
			if !member.down && !peer.down && !r.trusts(member.bundle, peer.pair) {
				r.t.Errorf("at %s %s does not trust %s", r.now, name, other)
			}
		}
		if !member.down && !r.operatorReaches(member) {
			r.t.Errorf("at %s the operator and %s do not trust each other", r.now, name)
		}
	}
}

func (r *rotating) trusts(bundle []byte, shown pki.Pair) bool {
	parsed, err := shown.Parse()
	return err == nil && verifies(bundle, parsed.Leaf, r.now, x509.ExtKeyUsageServerAuth)
}

func verifies(bundle []byte, leaf *x509.Certificate, at time.Time, usage x509.ExtKeyUsage) bool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err == nil
}

// operatorReaches reports whether operator and member accept each other.
func (r *rotating) operatorReaches(member *readingMember) bool {
	security, err := agent.NewOperatorTLS(r.kept, "", r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	shows := slices.ContainsFunc(security.Client().Certificates, func(own tls.Certificate) bool {
		return verifies(member.bundle, leafOf(r.t, own), r.now, x509.ExtKeyUsageClientAuth)
	})
	return shows && r.trusts(r.kept.Bundle(), member.pair)
}
