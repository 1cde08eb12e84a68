package destination

import "fmt"

// Kind classifies a problem with a destination.
type Kind string

// The kinds of StoreError.
const (
	// KindInvalid: the URL or its credentials are malformed. A retry does not help.
	KindInvalid Kind = "Invalid"
	// KindRefused: the credentials are wrong, or do not allow the request. A retry does not help before they change.
	KindRefused Kind = "Refused"
	// KindNotFound: the bucket, or the volume's folder, does not exist. A retry does not help before it exists.
	KindNotFound Kind = "NotFound"
	// KindUntrusted: no trusted CA signed the store's certificate, or it is for another name. A retry does not help before this is fixed.
	KindUntrusted Kind = "Untrusted"
	// KindEndpoint: the credentials may not be sent to the endpoint of the URL. A retry does not help before the Secret allows it.
	KindEndpoint Kind = "Endpoint"
	// KindRedirected: the server redirects to another address, which is not followed. A retry helps once the store itself answers.
	KindRedirected Kind = "Redirected"
	// KindFull: there is no space, or a quota is used up. A retry helps once there is space.
	KindFull Kind = "Full"
	// KindClockSkew: this machine's clock and the store's differ too much for signed requests. A retry helps once they agree.
	KindClockSkew Kind = "ClockSkew"
	// KindUnavailable: the store was not reached, cut the connection, stalled, or was busy for longer than requests are repeated. Try again
	// later.
	KindUnavailable Kind = "Unavailable"
)

// StoreError describes a problem with a destination and the remedy.
type StoreError struct {
	Kind Kind
	// Op is the operation that failed, for example "write part-00001 to s3://bucket/shop/db/nightly".
	Op string
	// Err is the cause. Its text is the same whenever the same problem occurs.
	Err error
}

// Error returns one line: the operation, the cause, and the remedy.
func (e *StoreError) Error() string {
	return fmt.Sprintf("%s: %v; %s", e.Op, e.Err, e.Kind.remedy())
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// remedy says what a user can do.
func (k Kind) remedy() string {
	switch k {
	case KindInvalid:
		return "correct the destination's URL or the keys of its Secret"
	case KindRefused:
		return "correct the credentials in the destination's Secret, or grant the missing permissions to them or to the Pod's identity"
	case KindNotFound:
		return "create the bucket, or correct its name in the URL"
	case KindUntrusted:
		return "put the certificates to trust into ca.crt of the destination's Secret, or correct the endpoint in the URL to a name that the certificate is for"
	case KindEndpoint:
		return "if the server is yours, add the key \"endpoint\" with its URL to the destination's Secret; else correct the endpoint in the destination's URL"
	case KindRedirected:
		return "correct the endpoint, or the region, in the destination's URL so that the store itself answers"
	case KindFull:
		return "make room: enlarge the volume or the quota, or delete backups"
	case KindClockSkew:
		return "correct the clock of the node (or of the store): they differ by more than the store allows"
	case KindUnavailable:
		return "check that the destination is up and can be reached from the Pod"
	}
	return "check the destination"
}
