package archive

import (
	"errors"

	"filippo.io/age"
)

// Keys are the age keys of an encryption Secret.
type Keys struct {
	Recipients []age.Recipient
	Identities []age.Identity
}

// ParseKeys reads the two keys of an encryption Secret, each of which may be empty: recipient has age public keys, one a line, and
// identity has age secret keys, one a line. Where there is no recipient, the identities' own public keys are taken. Empty lines and
// lines that begin with # mean nothing. Errors: *KeyError.
func ParseKeys(recipient, identity []byte) (Keys, error) { return Keys{}, errors.ErrUnsupported }
