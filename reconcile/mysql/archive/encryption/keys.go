// Package encryption reads the age keys of an encryption Secret. It does not import the code that encrypts and stores backups.
package encryption

import (
	"bytes"
	"fmt"
	"strings"

	"filippo.io/age"
)

// Keys are the age keys of an encryption Secret.
type Keys struct {
	Recipients []age.Recipient
	Identities []age.Identity
}

// ParseKeys reads the two keys of an encryption Secret, each of which may be empty: recipient has age public keys, one a line, and identity
// has age secret keys, one a line. If there is no recipient, ParseKeys uses the public keys of the identities. Empty lines and lines that
// begin with # are ignored. Errors: *KeyError.
func ParseKeys(recipient, identity []byte) (Keys, error) {
	var keys Keys
	var err error
	if !blank(recipient) {
		if keys.Recipients, err = age.ParseRecipients(bytes.NewReader(recipient)); err != nil {
			return Keys{}, &KeyError{Reason: fmt.Sprintf("read recipient: %v; it must have age public keys, one a line (age-keygen -y)", err)}
		}
	}
	if !blank(identity) {
		if keys.Identities, err = age.ParseIdentities(bytes.NewReader(identity)); err != nil {
			// The cause may quote a line of the secret key: it must not be in the message.
			return Keys{}, &KeyError{Reason: "read identity: it must have age secret keys, one a line (age-keygen)"}
		}
	}
	if len(keys.Recipients) == 0 {
		keys.Recipients = publicKeys(keys.Identities)
	}
	if len(keys.Recipients) == 0 {
		return Keys{}, &KeyError{Reason: "there is neither a recipient nor an identity"}
	}
	return keys, nil
}

// publicKeys returns the public keys of the identities.
func publicKeys(identities []age.Identity) []age.Recipient {
	var recipients []age.Recipient
	for _, identity := range identities {
		switch key := identity.(type) {
		case *age.X25519Identity:
			recipients = append(recipients, key.Recipient())
		case *age.HybridIdentity:
			recipients = append(recipients, key.Recipient())
		}
	}
	return recipients
}

// blank reports whether a file has no keys.
func blank(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// KeyError means that an age key is malformed or missing, or that the backup was not encrypted for it.
type KeyError struct{ Reason string }

func (e *KeyError) Error() string { return "encryption key: " + e.Reason }
