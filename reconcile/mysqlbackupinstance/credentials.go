package mysqlbackupinstance

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/backup"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// keyAuthorities is the key, of any Secret for a destination, with the certificates to trust.
const keyAuthorities = "ca.crt"

// keySets are, for each scheme of a destination, the sets of keys of which a Secret must hold one whole. A Secret with certificates
// alone leaves the rest to the Pod's identity.
func keySets(scheme string) [][]string {
	switch scheme {
	case "s3":
		return [][]string{{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, {keyAuthorities}}
	case "gs":
		return [][]string{{"service-account.json"}, {keyAuthorities}}
	case "azblob":
		return [][]string{{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"}, {"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_SAS_TOKEN"}, {keyAuthorities}}
	}
	return nil
}

// credentialsObstacle looks at the Secret for the destination.
func credentialsObstacle(instance v1.MySQLBackupInstance, seen sight) *problem {
	name := seen.location.Secret
	if name == "" {
		return nil
	}
	if !seen.credentials.found {
		return &problem{backup.ReasonCredentialsNotFound, fmt.Sprintf("destination.secret: Secret %q does not exist in namespace %q; create it with the credentials for %s", name, instance.Namespace, seen.location.URL), true}
	}
	parsed, err := url.Parse(seen.location.URL)
	if err != nil {
		return nil // LocationOf made it
	}
	sets := keySets(parsed.Scheme)
	if len(sets) == 0 || holdsOne(seen.credentials.data, sets) {
		return nil
	}
	wanted := make([]string, 0, len(sets))
	for _, keys := range sets[:len(sets)-1] {
		wanted = append(wanted, strings.Join(keys, " and "))
	}
	return &problem{backup.ReasonCredentialsNotFound, fmt.Sprintf("destination.secret: Secret %q lacks keys for %s://; it needs %s", name, parsed.Scheme, strings.Join(wanted, ", or ")), true}
}

// holdsOne says whether a Secret has one of the sets, and begins none of the others without ending it.
func holdsOne(data map[string][]byte, sets [][]string) bool {
	whole, begun := false, false
	for _, keys := range sets {
		missing := 0
		for _, key := range keys {
			if len(data[key]) == 0 {
				missing++
			}
		}
		switch {
		case missing == 0 && (keys[0] != keyAuthorities || !begun):
			whole = true
		case missing < len(keys):
			begun = true
		}
	}
	return whole
}

// keyObstacle looks at the Secret with the encryption key.
func keyObstacle(instance v1.MySQLBackupInstance, seen sight) *problem {
	name := seen.location.EncryptionSecret
	if name == "" {
		return nil
	}
	recipient, identity := seen.key.data[backup.KeyRecipient], seen.key.data[backup.KeyIdentity]
	switch {
	case !seen.key.found:
		return &problem{backup.ReasonEncryptionKeyNotFound, fmt.Sprintf("encryption.secret: Secret %q does not exist in namespace %q; create it with an age public key under %q", name, instance.Namespace, backup.KeyRecipient), true}
	case len(recipient) == 0 && len(identity) == 0:
		return &problem{backup.ReasonEncryptionKeyNotFound, fmt.Sprintf("encryption.secret: Secret %q has neither %q (age public keys) nor %q (age secret keys)", name, backup.KeyRecipient, backup.KeyIdentity), true}
	}
	if _, err := archive.ParseKeys(recipient, identity); err != nil {
		return &problem{backup.ReasonEncryptionKeyInvalid, fmt.Sprintf("encryption.secret: Secret %q: %v", name, err), true}
	}
	return nil
}
