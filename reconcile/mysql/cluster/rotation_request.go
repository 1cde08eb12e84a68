package cluster

import (
	"crypto/x509"
	"fmt"
	"time"
)

const (
	// AnnotationRotate, on a MySQLCluster, asks for a new CA: its value is a time (RFC 3339), and a CA that is older is replaced. One that is
	// yet to come is waited for.
	AnnotationRotate = prefix + "rotate-ca-before"
	// AnnotationOverlap, on a MySQLCluster, is for how long clients have both CAs before members show certificates of the new one. Its value
	// is a duration, such as 720h or 0s; without it, a week.
	AnnotationOverlap = prefix + "rotate-ca-overlap"

	// longestOverlap bounds the overlap: a CA that is renewed has to last for so long, and longer.
	longestOverlap = 90 * 24 * time.Hour
)

// rotationRequest is what people ask for about a cluster's CA.
type rotationRequest struct {
	// before replaces a CA that was made before it; zero for none.
	before time.Time
	// overlap is for clients; nil for the usual.
	overlap *time.Duration
	// fault says what cannot be understood of it; the rest counts.
	fault string
}

// rotationRequestOf reads a cluster's annotations.
func rotationRequestOf(annotations map[string]string) rotationRequest {
	var asked rotationRequest
	if value, given := annotations[AnnotationOverlap]; given {
		overlap, err := time.ParseDuration(value)
		if err != nil || overlap < 0 || overlap > longestOverlap {
			asked.fault = fmt.Sprintf("annotation %s=%q is not a duration between 0s and %dh, such as 168h; the default overlap of %dh applies", AnnotationOverlap, brief(value, longestWord),
				int(longestOverlap.Hours()), int(clientOverlap.Hours()))
		} else {
			asked.overlap = &overlap
		}
	}
	if value, given := annotations[AnnotationRotate]; given {
		before, err := time.Parse(time.RFC3339, value)
		if err != nil {
			asked.fault = fmt.Sprintf("annotation %s=%q is not a time such as 2026-12-31T15:00:00Z; the operator replaces no CA for it", AnnotationRotate, brief(value, longestWord))
		} else {
			asked.before = before
		}
	}
	return asked
}

// wants says whether a CA was made before the time that was asked for. Certificates tell whole seconds.
func (r rotationRequest) wants(authority *x509.Certificate, now time.Time) bool {
	return !r.before.IsZero() && !now.Before(r.before) && madeAt(authority).Before(r.before.Truncate(time.Second))
}

func (r rotationRequest) clientOverlap() time.Duration {
	if r.overlap == nil {
		return clientOverlap
	}
	return *r.overlap
}

// same says whether two requests ask for the same.
func (r rotationRequest) same(other rotationRequest) bool {
	return r.before.Equal(other.before) && r.clientOverlap() == other.clientOverlap() && r.fault == other.fault
}
