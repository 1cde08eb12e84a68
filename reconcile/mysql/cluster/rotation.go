package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
)

// A cluster's CA goes over to another in steps, each of which can be repeated:
//
//	bring a new CA ──(clients had time to trust it, members do)──▶ sign with it ──(an hour, members show that)──▶ forget the old CA
//
// Everybody trusts both in between, so that nothing has to happen at the same moment anywhere, and no mysqld starts anew.

const (
	// clientOverlap is for how long clients have both CAs before a server shows a certificate of the new one.
	clientOverlap = 7 * 24 * time.Hour
	// memberOverlap is for how long the old CA is trusted when members show nothing of it any more.
	memberOverlap = time.Hour
)

// step is what to do next about a cluster's certificates.
type step string

const (
	stepKeep step = "keep"
	// stepStart makes a CA where there is none that can sign. The one that members are known by stays trusted.
	stepStart step = "create a CA"
	// stepBring puts a new CA beside the old one, which goes on to be what members are known by.
	stepBring step = "add a new CA"
	// stepTrust tells members and clients which CAs to trust.
	stepTrust step = "give members the CAs to trust"
	// stepNote notes when members were told, stepNoteClients when clients were: from then on they have time.
	stepNote        step = "note when members got the new CA"
	stepNoteClients step = "note when clients got the new CA"
	// stepSign gives the members a new certificate.
	stepSign step = "sign the members' certificate"
	// stepForget takes the old CA away.
	stepForget step = "remove the old CA"
)

// situation is all that the next step depends on.
type situation struct {
	// authorities are the CAs that the operator keeps; none where its Secret is lost or damaged.
	authorities agent.Authorities
	// told is when members were told of the newest, clientsTold when clients were; zero where that is not noted.
	told, clientsTold time.Time
	// bundle is what members are given to trust, leaf their certificate: nil where there is none that can be read.
	bundle []byte
	leaf   *x509.Certificate
	// fits says that leaf names everything it has to.
	fits bool
	// known is the CA that members are known by where the operator's Secret is lost; nil where there are no members.
	known *x509.Certificate
	// inUse says that every member that runs uses what it is given. One that does not run reads it when it starts.
	inUse bool
	// published says that ConfigMap NAME-ca-cert, from which clients learn whom to trust, has the bundle. It is looked at in a rotation.
	published bool
	asked     rotationRequest
}

// move is the next step.
type move struct {
	step step
	// issuer is who signs.
	issuer *tls.Certificate
	// waits says for what a rotation waits; empty where none is under way.
	waits rotationWait
	// until is when that ends, if time alone ends it.
	until time.Time
}

// rotationWait is the reason of the condition CertificateRotation.
type rotationWait string

const (
	// waitForMembers: not all members that run use the files that they are given.
	waitForMembers rotationWait = "WaitingForMembers"
	// waitForClients: clients are given time to trust the new CA.
	waitForClients rotationWait = "WaitingForClients"
	// waitToForget: the old CA is about to be forgotten.
	waitToForget rotationWait = "ForgettingOldCA"
)

// next decides.
func (s situation) next(now time.Time) move {
	switch {
	case len(s.authorities) == 0 || !agent.Signs(s.authorities[0], now):
		return move{step: stepStart}
	case !s.serves(now):
		return move{step: stepSign, issuer: s.issuer(now)}
	case !bytes.Equal(s.bundle, s.authorities.Bundle()):
		return move{step: stepTrust}
	case s.note() != stepKeep:
		return move{step: s.note()}
	case s.extends(s.shown(), now):
		return move{step: stepSign, issuer: s.shown()}
	case len(s.authorities) > 1:
		return s.rotating(now)
	case pki.Renewable(s.authorities[0].Leaf, now) || s.asked.wants(s.authorities[0].Leaf, now):
		return move{step: stepBring}
	}
	return move{step: stepKeep}
}

// note is what has to be noted of a CA that no certificate is of yet; stepKeep for nothing.
func (s situation) note() step {
	switch {
	case s.shown() == s.authorities[0]:
		return stepKeep
	case s.told.IsZero():
		return stepNote
	case s.clientsTold.IsZero() && s.published:
		return stepNoteClients
	}
	return stepKeep
}

// rotating decides while two CAs are trusted. What time alone ends comes before what members have to do: an operator that has just started
// has not heard them yet, and says what the one before it said.
func (s situation) rotating(now time.Time) move {
	newest := s.authorities[0]
	isSigned := s.shown() == newest
	trusted := s.clientsTold.Add(s.asked.clientOverlap())
	gone := madeAt(s.leaf).Add(min(memberOverlap, s.asked.clientOverlap()))
	switch {
	case !isSigned && (!s.published || s.clientsTold.IsZero()):
		return move{step: stepKeep, waits: waitForClients}
	case !isSigned && now.Before(trusted):
		return move{step: stepKeep, waits: waitForClients, until: trusted}
	case isSigned && now.Before(gone):
		return move{step: stepKeep, waits: waitToForget, until: gone}
	case !s.inUse:
		return move{step: stepKeep, waits: waitForMembers}
	case !isSigned:
		return move{step: stepSign, issuer: newest}
	}
	return move{step: stepForget}
}

// shown is the CA that signed the members' certificate; nil if it is none of the cluster's.
func (s situation) shown() *tls.Certificate {
	if s.leaf == nil {
		return nil
	}
	return s.authorities.Issuer(s.leaf)
}

// serves says whether the members' certificate is good for anything. One that has not begun yet was made while a clock was ahead.
func (s situation) serves(now time.Time) bool {
	issuer := s.shown()
	return issuer != nil && s.fits && pki.Lasts(s.leaf, now) && pki.Lasts(issuer.Leaf, now)
}

// issuer is who signs a certificate in the place of one that is good for nothing: whom everybody has trusted for longest.
func (s situation) issuer(now time.Time) *tls.Certificate {
	if one := s.shown(); one != nil && agent.Signs(one, now) {
		return one
	}
	found := s.authorities[0]
	for _, one := range s.authorities {
		if agent.Signs(one, now) {
			found = one
		}
	}
	return found
}

// extends says whether the members' certificate ends soon, and the authority can give them one that lasts longer.
func (s situation) extends(authority *tls.Certificate, now time.Time) bool {
	return pki.Renewable(s.leaf, now) && agent.Signs(authority, now) && lifeUnder(authority, now).After(s.leaf.NotAfter)
}

// replace carries out a step that is about the CAs, and returns those that there are then.
func (s situation) replace(next step, n names, now time.Time) (agent.Authorities, error) {
	if next == stepForget {
		return s.authorities[:1], nil
	}
	made, err := newAuthority(n, now)
	if err != nil {
		return nil, err
	}
	newest, err := made.Parse()
	if err != nil {
		return nil, err
	}
	former := s.authorities
	if len(former) == 0 && s.known != nil {
		former = agent.Authorities{{Certificate: [][]byte{s.known.Raw}, Leaf: s.known}}
	}
	if len(former) > 2 {
		former = former[1:] // nobody was told of that one, nor of the one before it
	}
	// Also one that has ended stays until all use the new one: it may only seem to have ended, to a clock that is ahead.
	return append(agent.Authorities{newest}, former...), nil
}

// message says for people what a rotation waits for.
func (m move) message(n names) string {
	switch m.waits {
	case waitForMembers:
		return "the operator is replacing the CA; waiting until every running member uses the certificates that it was given"
	case waitForClients:
		if m.until.IsZero() {
			return fmt.Sprintf("there is a new CA, but it is not in ConfigMap %s yet; members show no certificate of it until clients can trust it", n.trust())
		}
		return fmt.Sprintf("a new CA is in ConfigMap %s; members show a certificate of it from %s on, so that clients have time to trust it", n.trust(), m.until.UTC().Format(time.RFC3339))
	case waitToForget:
		return fmt.Sprintf("members have a certificate of the new CA; the operator removes the old CA after %s, once every running member shows the new certificate", m.until.UTC().Format(time.RFC3339))
	}
	return ""
}
