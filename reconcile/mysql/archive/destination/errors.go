package destination

import "fmt"

// Kind says in one word what went wrong with a destination.
type Kind string

// The kinds of StoreError.
const (
	// KindInvalid: the URL or its credentials are malformed. Trying again is no use.
	KindInvalid Kind = "Invalid"
	// KindRefused: the credentials are wrong, or do not allow what was tried. Trying again is no use before they change.
	KindRefused Kind = "Refused"
	// KindNotFound: the bucket, or the volume's folder, does not exist. Trying again is no use before it does.
	KindNotFound Kind = "NotFound"
	// KindUntrusted: the certificate of the store is nobody's that is trusted, or for another name. Trying again is no use before that is put
	// right.
	KindUntrusted Kind = "Untrusted"
	// KindEndpoint: the credentials may not be sent to the endpoint of the URL. Trying again is no use before the Secret says that they may.
	KindEndpoint Kind = "Endpoint"
	// KindRedirected: what answers points to another address, which is not followed. Trying again is of use once the store itself answers.
	KindRedirected Kind = "Redirected"
	// KindFull: no space, or a quota is used up. Trying again is of use once there is space.
	KindFull Kind = "Full"
	// KindClockSkew: this machine's clock and the store's are too far apart for signed requests. Trying again is of use once they agree.
	KindClockSkew Kind = "ClockSkew"
	// KindUnavailable: not reached, cut off, stalled, or busy for longer than requests are repeated. Try again later.
	KindUnavailable Kind = "Unavailable"
)

// StoreError says what went wrong with a destination, and what to do about it.
type StoreError struct {
	Kind Kind
	// Op is what was tried, for example "write part-00001 to s3://bucket/shop/db/nightly".
	Op string
	// Err is the cause. Its words are the same whenever the same goes wrong.
	Err error
}

// Error is the whole story in one line: what was tried, the cause, and the remedy.
func (e *StoreError) Error() string {
	return fmt.Sprintf("%s: %v; %s", e.Op, e.Err, e.Kind.remedy())
}

// Unwrap is the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// remedy is what a person can do.
func (k Kind) remedy() string {
	switch k {
	case KindInvalid:
		return "correct the destination's URL or the keys of its Secret"
	case KindRefused:
		return "correct the credentials in the destination's Secret, or what they, or the Pod's identity, are allowed to do"
	case KindNotFound:
		return "make the bucket, or correct its name in the URL"
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
		return "look whether the destination is up and can be reached from the Pod"
	}
	return "look at the destination"
}
