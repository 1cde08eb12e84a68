package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
)

// maxSteps limits how many steps one look at the certificates may take: adding a new CA takes three or four.
const maxSteps = 5

// certificateState are the result of a look at a cluster's certificates.
type certificateState struct {
	// security is how the operator connects to agents and transfers.
	security *agent.OperatorTLS
	// bundle are the CAs that clients should trust, in PEM.
	bundle []byte
	// digest identifies the files that the members were given; awaited reports whether the next step waits until they use them.
	digest  string
	awaited bool
	// lost is when a CA replaced one whose key is lost, while the members' certificate is still of the lost one; zero otherwise.
	lost time.Time
	// rotation is the condition CertificateRotation; nil for none.
	rotation *rotation
	// stuck reports whether a step could not be written, unpublished whether clients cannot get a new CA yet.
	stuck, unpublished bool
}

// certificateCheck is one look at a cluster's certificates.
type certificateCheck struct {
	children.Names
	situation
	client *reconcile.Client
	now    time.Time
	// uses identifies the files that all members were seen to use.
	uses string
	// kept and given are the two Secrets as they were read, nil if missing: the operator's, and the members' with its content.
	kept, given *unstructured.Unstructured
	content     map[string][]byte
}

// certificates reads a cluster's CAs and its members' certificate, creates what is missing, and takes the steps that are due. Each step is
// one write, so that the next pass can continue after a crash, also of another operator.
func (r *reconciler) certificates(ctx context.Context, l certificateCheck) (certificateState, error) {
	if err := r.observeCertificates(ctx, &l); err != nil {
		return certificateState{}, err
	}
	due := l.next(l.now)
	for range maxSteps {
		if due.step == stepKeep {
			break
		}
		if err := r.takeStep(ctx, &l, due); err != nil {
			return l.stuck(err)
		}
		logr.FromContextOrDiscard(ctx).Info("certificates changed", "op", string(due.step))
		due = l.next(l.now)
	}
	return l.papers(due)
}

func (r *reconciler) observeCertificates(ctx context.Context, l *certificateCheck) error {
	var err error
	if l.authorities, l.kept, err = r.home().readAuthorities(ctx, l.Names, l.client.Owner().GetUID()); err != nil {
		return err
	}
	l.membersHaveCASince, l.clientsHaveCASince = readDistribution(l.kept, annotationTold), readDistribution(l.kept, annotationClientsTold)
	if l.given, err = r.ownSecret(ctx, l.client, l.Names, l.CertificateSecret()); err != nil {
		return err
	}
	if err := l.readGiven(); err != nil {
		return err
	}
	if len(l.authorities) > 1 && l.shown() != l.authorities[0] {
		return r.observePublished(ctx, l)
	}
	if len(l.authorities) > 0 || l.leaf == nil {
		return nil
	}
	// A client that may only write Secrets must not make the operator trust a CA. Creating a StatefulSet takes the permission to run Pods.
	exist, err := r.membersExist(ctx, l.client, l.Names)
	if err != nil || !exist {
		return err
	}
	if trusted, err := pki.ReadCertificates(l.bundle); err == nil {
		l.known = pki.Issuer(l.leaf, trusted)
	}
	return nil
}

// observePublished checks whether clients can read which CAs to trust.
func (r *reconciler) observePublished(ctx context.Context, l *certificateCheck) error {
	found, err := r.reader.Get(ctx, children.ConfigMaps(), l.Namespace, l.TrustMap())
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	told, _, _ := unstructured.NestedString(found.Object, "data", children.KeyAuthorities)
	l.published = told == string(l.authorities.Bundle())
	return nil
}

// readGiven reads what the members were given.
func (l *certificateCheck) readGiven() error {
	l.content = nil
	if l.given != nil {
		var err error
		if l.content, err = children.SecretData(l.given); err != nil {
			return err
		}
	}
	l.bundle = l.content[children.KeyAuthorities]
	l.leaf, l.fits = children.ReadMemberCertificate(l.Names, pki.Pair{Certificate: l.content[children.KeyCertificate], Key: l.content[children.KeyPrivate]})
	l.inUse = l.uses != "" && l.uses == l.digest()
	return nil
}

// digest identifies what the members were given.
func (l *certificateCheck) digest() string {
	return agent.TLSDigest(l.content[children.KeyAuthorities], l.content[children.KeyCertificate])
}

// takeStep carries out one step. If the step cannot be written, the look stays as it was.
func (r *reconciler) takeStep(ctx context.Context, l *certificateCheck, due nextStep) error {
	switch due.step {
	case stepTrust, stepSign:
		return r.give(ctx, l, due.issuer)
	case stepNote:
		return r.note(ctx, l, annotationTold, &l.membersHaveCASince)
	case stepNoteClients:
		return r.note(ctx, l, annotationClientsTold, &l.clientsHaveCASince)
	case stepKeep, stepStart, stepBring, stepForget:
	}
	held, err := l.replace(due.step, l.Names, l.now)
	if err != nil {
		return err
	}
	written, err := r.writeAuthorities(ctx, l.client, l.Names, held, l.kept)
	if err != nil {
		return err
	}
	l.authorities, l.kept = held, written
	l.membersHaveCASince, l.clientsHaveCASince, l.published = time.Time{}, time.Time{}, false
	return nil
}

// note records in an annotation that members or clients have the newest CA by now.
func (r *reconciler) note(ctx context.Context, l *certificateCheck, annotation string, told *time.Time) error {
	written, err := r.noteTold(ctx, l.client, l.kept, annotation, l.now)
	if err != nil {
		return err
	}
	l.kept, *told = written, l.now
	return nil
}

// give gives the members the CAs to trust and, with an issuer, a new certificate.
func (r *reconciler) give(ctx context.Context, l *certificateCheck, issuer *tls.Certificate) error {
	data := map[string][]byte{children.KeyAuthorities: l.authorities.Bundle()}
	if issuer != nil {
		made, err := children.NewMemberCertificate(l.Names, issuer, l.now)
		if err != nil {
			return err
		}
		data[children.KeyCertificate], data[children.KeyPrivate] = made.Certificate, made.Key
	}
	var written *unstructured.Unstructured
	var err error
	if l.given == nil {
		written, err = r.createSecret(ctx, l.client, l.Names, l.CertificateSecret(), data)
	} else {
		written, err = l.client.Patch(ctx, children.Secrets(), l.given, map[string]any{"data": encoded(data)})
	}
	if err != nil {
		return err
	}
	l.given = written
	return l.readGiven()
}

// papers returns the result of a look.
func (l *certificateCheck) papers(last nextStep) (certificateState, error) {
	held := l.authorities
	security, err := agent.NewOperatorTLS(held, agent.AlarmHost(l.Namespace, l.Cluster), l.now)
	if err != nil {
		return certificateState{}, err
	}
	found := certificateState{security: security, bundle: security.Bundle(), digest: l.digest(), awaited: last.waits == waitForMembers, rotation: rotationOf(l.Names, last, l.asked)}
	found.unpublished = last.waits == waitForClients && !l.published
	if one := l.shown(); one != nil && one.PrivateKey == nil {
		found.lost = l.membersHaveCASince
		if l.membersHaveCASince.IsZero() {
			found.lost = children.CreatedAt(held[0].Leaf)
		}
	}
	return found, nil
}

// stuck returns the result of a look in which a step could not be written. As long as the members' certificate is valid, the operator still
// reaches them.
func (l *certificateCheck) stuck(err error) (certificateState, error) {
	if len(l.authorities) == 0 || !l.serves(l.now) {
		return certificateState{}, err
	}
	found, failed := l.papers(nextStep{step: stepKeep})
	found.stuck = true
	return found, errors.Join(err, failed)
}

// lostSince returns when a CA was lost, by this operator's clock. If the clock of the operator that created the new CA is ahead, it is when
// this operator saw the new CA first.
func (p certificateState) lostSince(former certificateState, now time.Time) time.Time {
	switch {
	case !p.lost.After(now):
		return p.lost
	case !former.lost.IsZero() && bytes.Equal(former.bundle, p.bundle):
		return former.lost
	}
	return now
}

// keepOldCertificates lets the operator continue to show certificates of CAs whose keys are lost, as long as they last.
func (p certificateState) keepOldCertificates(former *agent.OperatorTLS, now time.Time) {
	if former != nil && !p.lost.IsZero() {
		p.security.KeepFrom(former, now)
	}
}
