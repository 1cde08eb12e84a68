package cluster

import (
	"crypto/x509"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

const (
	// AnnotationRotate, on a MySQLCluster, asks for a new CA: its value is a time (RFC 3339), and the operator replaces a CA that is older.
	// It waits for a time in the future.
	AnnotationRotate = children.Prefix + "rotate-ca-before"
	// AnnotationOverlap, on a MySQLCluster, is how long clients have both CAs before members show certificates of the new one. Its value is
	// a duration, such as 720h or 0s. Default: a week.
	AnnotationOverlap = children.Prefix + "rotate-ca-overlap"

	// longestOverlap limits the overlap: a CA that is being replaced must last for longer than that.
	longestOverlap = 90 * 24 * time.Hour
)

// rotationRequest is what a user asks for about a cluster's CA.
type rotationRequest struct {
	// before asks to replace a CA that was made before this time; zero for none.
	before time.Time
	// overlap is for clients; nil for the default.
	overlap *time.Duration
	// fault says which annotation cannot be parsed; the other one counts.
	fault string
}

// rotationRequestOf reads a cluster's annotations.
func rotationRequestOf(annotations map[string]string) rotationRequest {
	var asked rotationRequest
	if value, given := annotations[AnnotationOverlap]; given {
		overlap, err := time.ParseDuration(value)
		if err != nil || overlap < 0 || overlap > longestOverlap {
			asked.fault = fmt.Sprintf("annotation %s=%q is not a duration between 0s and %dh, such as 168h; the default overlap of %dh applies", AnnotationOverlap, report.Brief(value, report.LongestWord),
				int(longestOverlap.Hours()), int(clientOverlap.Hours()))
		} else {
			asked.overlap = &overlap
		}
	}
	if value, given := annotations[AnnotationRotate]; given {
		before, err := time.Parse(time.RFC3339, value)
		if err != nil {
			asked.fault = fmt.Sprintf("annotation %s=%q is not a time such as 2026-12-31T15:00:00Z; the operator replaces no CA for it", AnnotationRotate, report.Brief(value, report.LongestWord))
		} else {
			asked.before = before
		}
	}
	return asked
}

// wants reports whether a CA was made before the requested time. Certificates have times in whole seconds.
func (r rotationRequest) wants(authority *x509.Certificate, now time.Time) bool {
	return !r.before.IsZero() && !now.Before(r.before) && children.CreatedAt(authority).Before(r.before.Truncate(time.Second))
}

func (r rotationRequest) clientOverlap() time.Duration {
	if r.overlap == nil {
		return clientOverlap
	}
	return *r.overlap
}

// same reports whether two requests ask for the same.
func (r rotationRequest) same(other rotationRequest) bool {
	return r.before.Equal(other.before) && r.clientOverlap() == other.clientOverlap() && r.fault == other.fault
}
