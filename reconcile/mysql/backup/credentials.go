package backup

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// keyAuthorities is the key of the CA certificates to trust. The Secret of any destination may have it.
	keyAuthorities = "ca.crt"
	// keyEndpoint is the key of the server that may receive the credentials, see destination.CheckEndpoint.
	keyEndpoint = "endpoint"
	// keyAzureAccount is the key of the name of the Azure storage account.
	keyAzureAccount = "AZURE_STORAGE_ACCOUNT"
)

// storeKeys are the keys that the Secret for a kind of store can have.
type storeKeys struct {
	// sets are the sets of keys that hold credentials. One complete set is enough.
	sets [][]string
	// optional are keys that are enough if no key of the sets is there. The Pod's own identity is used then.
	optional []string
}

// keysOf returns the keys for a destination. For Azure, the URL may hold the storage account instead. The account of a signature must be in
// the Secret, because that account's server sees the signature.
func keysOf(where *url.URL) storeKeys {
	switch where.Scheme {
	case "s3":
		return storeKeys{sets: [][]string{{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}}, optional: []string{"AWS_REGION", keyAuthorities, keyEndpoint}}
	case "gs":
		return storeKeys{sets: [][]string{{"service-account.json"}}, optional: []string{keyAuthorities, keyEndpoint}}
	case "azblob":
		key, signature := []string{keyAzureAccount, "AZURE_STORAGE_KEY"}, []string{keyAzureAccount, "AZURE_STORAGE_SAS_TOKEN"}
		if options := where.Query(); options.Get("storage_account") != "" {
			key = key[1:]
			if options.Get("endpoint") != "" {
				signature = signature[1:] // destination.CheckEndpoint decides whether this server may see it
			}
		}
		return storeKeys{sets: [][]string{key, signature}, optional: []string{keyAzureAccount, keyAuthorities, keyEndpoint}}
	}
	return storeKeys{}
}

// areIn reports whether a Secret has enough keys. Part of a set is not enough: the user has forgotten the rest.
func (k storeKeys) areIn(data map[string][]byte) bool {
	has := func(key string) bool { return len(data[key]) > 0 }
	for _, set := range k.sets {
		if !slices.ContainsFunc(set, func(key string) bool { return !has(key) }) {
			return true
		}
	}
	for _, key := range slices.Concat(k.sets...) {
		if has(key) && !slices.Contains(k.optional, key) {
			return false
		}
	}
	return slices.ContainsFunc(k.optional, has)
}

// String is for messages.
func (k storeKeys) String() string {
	wanted := make([]string, 0, len(k.sets)+1)
	for _, set := range k.sets {
		wanted = append(wanted, strings.Join(set, " and "))
	}
	return strings.Join(append(wanted, strings.Join(k.optional, " or ")+" alone to use the identity of the Pod"), ", or ")
}

// credentialsObstacle checks the Secret of the destination, and the server that would receive its credentials or the identity of the Pod.
func credentialsObstacle(instance v1.MySQLBackupInstance, seen observed) *report.Problem {
	name := seen.location.Secret
	if name == "" {
		return endpointObstacle(seen)
	}
	if !seen.credentials.found {
		return &report.Problem{Reason: protocol.ReasonCredentialsNotFound, Message: fmt.Sprintf("destination.secret: Secret %q does not exist in namespace %q; create it with the credentials for %s", name, instance.Namespace, seen.location.URL), Stalled: true}
	}
	parsed, err := url.Parse(seen.location.URL)
	if err != nil {
		return nil // LocationOf made this URL, so it is valid
	}
	keys := keysOf(parsed)
	if len(keys.sets) == 0 || keys.areIn(seen.credentials.data) {
		return endpointObstacle(seen)
	}
	return &report.Problem{Reason: protocol.ReasonCredentialsNotFound, Message: fmt.Sprintf("destination.secret: Secret %q is missing keys for %s://; it needs %s", name, parsed.Scheme, keys), Stalled: true}
}

// endpointObstacle checks whether the credentials may be sent to the server in the URL.
func endpointObstacle(seen observed) *report.Problem {
	err := endpointRefused(seen.location.URL, seen.credentials.data)
	if err == nil {
		return nil
	}
	return &report.Problem{Reason: protocol.ReasonDestinationRefused, Message: fmt.Sprintf("destination.url: %v", err), Stalled: true}
}

// endpointRefused returns why credentials must not be sent to the server in a URL; nil if they may. The Pod reports other errors of the
// URL.
func endpointRefused(where string, credentials map[string][]byte) error {
	err := destination.CheckEndpoint(where, credentials)
	if store, ok := errors.AsType[*destination.StoreError](err); ok && store.Kind == destination.KindEndpoint {
		return err
	}
	return nil
}

// keyFor returns the key in the Secret that a backup's Pod reads. This is the public key, if there is one: the Pod does not need to
// decrypt.
func keyFor(key secret) string {
	if _, err := encryption.ParseKeys(key.data[protocol.KeyRecipient], nil); err != nil && len(key.data[protocol.KeyIdentity]) > 0 {
		return protocol.KeyIdentity
	}
	return protocol.KeyRecipient
}

// keyObstacle checks the Secret of the encryption key.
func keyObstacle(instance v1.MySQLBackupInstance, seen observed) *report.Problem {
	name := seen.location.EncryptionSecret
	if name == "" {
		return nil
	}
	recipient, identity := seen.key.data[protocol.KeyRecipient], seen.key.data[protocol.KeyIdentity]
	switch {
	case !seen.key.found:
		return &report.Problem{Reason: protocol.ReasonEncryptionKeyNotFound, Message: fmt.Sprintf("encryption.secret: Secret %q does not exist in namespace %q; create it with an age public key under %q", name, instance.Namespace, protocol.KeyRecipient), Stalled: true}
	case len(recipient) == 0 && len(identity) == 0:
		return &report.Problem{Reason: protocol.ReasonEncryptionKeyNotFound, Message: fmt.Sprintf("encryption.secret: Secret %q has neither %q (age public keys) nor %q (age secret keys)", name, protocol.KeyRecipient, protocol.KeyIdentity), Stalled: true}
	}
	if _, err := encryption.ParseKeys(recipient, identity); err != nil {
		return &report.Problem{Reason: protocol.ReasonEncryptionKeyInvalid, Message: fmt.Sprintf("encryption.secret: Secret %q: %v", name, err), Stalled: true}
	}
	return nil
}
