package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

// A cluster's CA is replaced by another in steps, each of which can be repeated:
//
//	add a new CA ──(clients had time to trust it, members do)──▶ sign with it ──(an hour, members show that)──▶ remove the old CA
//
// Members and clients trust both in between, so that nothing has to happen at the same moment in two places, and no mysqld restarts.

const (
	// clientOverlap is how long clients have both CAs before a server shows a certificate of the new one.
	clientOverlap = 7 * 24 * time.Hour
	// memberOverlap is how long the old CA stays trusted after members no longer show certificates of it.
	memberOverlap = time.Hour
)

// step is what to do next about a cluster's certificates.
type step string

const (
	stepKeep step = "keep"
	// stepStart creates a CA if there is none that can sign. The one that signed the members' certificate stays trusted.
	stepStart step = "create a CA"
	// stepBring adds a new CA to the old one, which stays the one that signed the members' certificate.
	stepBring step = "add a new CA"
	// stepTrust gives members the CAs to trust.
	stepTrust step = "give members the CAs to trust"
	// stepNote records when members got the new CA, stepNoteClients when clients got it: their time to trust it begins then.
	stepNote        step = "note when members got the new CA"
	stepNoteClients step = "note when clients got the new CA"
	// stepSign gives the members a new certificate.
	stepSign step = "sign the members' certificate"
	// stepForget removes the old CA.
	stepForget step = "remove the old CA"
)

// situation is everything that the next step depends on.
type situation struct {
	// authorities are the CAs that the operator keeps; none if its Secret is lost or damaged.
	authorities agent.Authorities
	// membersHaveCASince is when members got the newest CA, clientsHaveCASince when clients got it; zero if that is not recorded.
	membersHaveCASince, clientsHaveCASince time.Time
	// bundle are the CAs that members were given to trust, leaf is their certificate: nil if there is none that can be read.
	bundle []byte
	leaf   *x509.Certificate
	// fits reports whether leaf has all the names that it must have.
	fits bool
	// known is the CA that signed the members' certificate if the operator's Secret is lost; nil if there are no members.
	known *x509.Certificate
	// inUse reports whether every running member uses the files that it was given. Others read them when they start.
	inUse bool
	// published reports whether ConfigMap NAME-ca-cert, from which clients learn which CAs to trust, has the bundle. It is read in a
	// rotation.
	published bool
	asked     rotationRequest
}

// nextStep is the next step.
type nextStep struct {
	step step
	// issuer is the CA that signs.
	issuer *tls.Certificate
	// waits is what a rotation waits for; empty if none is in progress.
	waits rotationWait
	// until is when that wait ends, if only time ends it.
	until time.Time
}

// rotationWait is the reason of the condition CertificateRotation.
type rotationWait string

const (
	// waitForMembers: not all running members use the files that they were given.
	waitForMembers rotationWait = "WaitingForMembers"
	// waitForClients: clients get time to trust the new CA.
	waitForClients rotationWait = "WaitingForClients"
	// waitToForget: the operator is about to remove the old CA.
	waitToForget rotationWait = "ForgettingOldCA"
)

// next decides about the next step.
func (s situation) next(now time.Time) nextStep {
	switch {
	case len(s.authorities) == 0 || !agent.Signs(s.authorities[0], now):
		return nextStep{step: stepStart}
	case !s.serves(now):
		return nextStep{step: stepSign, issuer: s.issuer(now)}
	case !bytes.Equal(s.bundle, s.authorities.Bundle()):
		return nextStep{step: stepTrust}
	case s.note() != stepKeep:
		return nextStep{step: s.note()}
	case s.extends(s.shown(), now):
		return nextStep{step: stepSign, issuer: s.shown()}
	case len(s.authorities) > 1:
		return s.rotating(now)
	case pki.Renewable(s.authorities[0].Leaf, now) || s.asked.wants(s.authorities[0].Leaf, now):
		return nextStep{step: stepBring}
	}
	return nextStep{step: stepKeep}
}

// note returns the step that records who has a CA that has signed no certificate yet; stepKeep for none.
func (s situation) note() step {
	switch {
	case s.shown() == s.authorities[0]:
		return stepKeep
	case s.membersHaveCASince.IsZero():
		return stepNote
	case s.clientsHaveCASince.IsZero() && s.published:
		return stepNoteClients
	}
	return stepKeep
}

// rotating decides while two CAs are trusted. It looks at what only time ends before what members must do: an operator that has just
// started has not heard the members yet, and reports the same as the one before it.
func (s situation) rotating(now time.Time) nextStep {
	newest := s.authorities[0]
	isSigned := s.shown() == newest
	trusted := s.clientsHaveCASince.Add(s.asked.clientOverlap())
	gone := children.CreatedAt(s.leaf).Add(min(memberOverlap, s.asked.clientOverlap()))
	switch {
	case !isSigned && (!s.published || s.clientsHaveCASince.IsZero()):
		return nextStep{step: stepKeep, waits: waitForClients}
	case !isSigned && now.Before(trusted):
		return nextStep{step: stepKeep, waits: waitForClients, until: trusted}
	case isSigned && now.Before(gone):
		return nextStep{step: stepKeep, waits: waitToForget, until: gone}
	case !s.inUse:
		return nextStep{step: stepKeep, waits: waitForMembers}
	case !isSigned:
		return nextStep{step: stepSign, issuer: newest}
	}
	return nextStep{step: stepForget}
}

// shown returns the CA that signed the members' certificate; nil if it is none of the cluster's.
func (s situation) shown() *tls.Certificate {
	if s.leaf == nil {
		return nil
	}
	return s.authorities.Issuer(s.leaf)
}

// serves reports whether the members' certificate can be used. One that is not valid yet was made while a clock was ahead.
func (s situation) serves(now time.Time) bool {
	issuer := s.shown()
	return issuer != nil && s.fits && pki.Lasts(s.leaf, now) && pki.Lasts(issuer.Leaf, now)
}

// issuer returns the CA that signs in the place of a certificate that cannot be used: the one that was trusted for longest.
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

// extends reports whether the members' certificate expires soon, and the authority can give them one that lasts longer.
func (s situation) extends(authority *tls.Certificate, now time.Time) bool {
	return pki.Renewable(s.leaf, now) && agent.Signs(authority, now) && children.MemberExpiry(authority, now).After(s.leaf.NotAfter)
}

// replace carries out a step that changes the CAs, and returns the CAs that there are then.
func (s situation) replace(next step, n children.Names, now time.Time) (agent.Authorities, error) {
	if next == stepForget {
		return s.authorities[:1], nil
	}
	made, err := children.NewAuthority(n, now)
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
		former = former[1:] // no member or client got this one, nor the one before it
	}
	// A CA that has expired also stays until all use the new one: it may only seem expired, to a clock that is ahead.
	return append(agent.Authorities{newest}, former...), nil
}

// message explains to users what a rotation waits for.
func (m nextStep) message(n children.Names) string {
	switch m.waits {
	case waitForMembers:
		return "the operator is replacing the CA; waiting until every running member uses the certificates that it was given"
	case waitForClients:
		if m.until.IsZero() {
			return fmt.Sprintf("there is a new CA, but it is not in ConfigMap %s yet; members show no certificate of it until clients can trust it", n.TrustMap())
		}
		return fmt.Sprintf("a new CA is in ConfigMap %s; members show a certificate of it from %s on, so that clients have time to trust it", n.TrustMap(), m.until.UTC().Format(time.RFC3339))
	case waitToForget:
		return fmt.Sprintf("members have a certificate of the new CA; the operator removes the old CA after %s, once every running member shows the new certificate", m.until.UTC().Format(time.RFC3339))
	}
	return ""
}
