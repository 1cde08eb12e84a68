package destination

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// EndpointError means that credentials are not sent to the endpoint of a URL, because the owner of the credentials has not allowed it.
type EndpointError struct{ endpoint string }

func (e *EndpointError) Error() string {
	return fmt.Sprintf("credentials are not sent to endpoint=%s, which is not one of the provider's own servers and is not named by the Secret", e.endpoint)
}

// CheckEndpoint returns an error if credentials may not be sent to the server in a URL. The author of the URL may not be the owner of the
// credentials: without this check, the author could have them sent to a server of their own. So credentials are sent only
//   - to the provider's own servers, over HTTPS;
//   - to the endpoint that the Secret names with its key "endpoint". Over plain HTTP only requests signed with them are sent, never a
//     token;
//   - with "endpoints: any" in the Secret to every endpoint, over HTTPS. This does not apply to the identity of the Pod.
//
// All customers share a provider's servers. A key only signs requests, but a shared access signature is shown to the storage account in the
// request. On the provider's servers, it is sent only to the account that the Secret names.
//
// The Secret may be empty: then the credentials are the identity of the Pod. Errors: *StoreError, with KindEndpoint if the Secret does not
// name the endpoint.
func CheckEndpoint(destination string, secret map[string][]byte) error {
	place, err := Parse(destination)
	if err != nil {
		return AsStoreError(err, "the destination")
	}
	keys := map[string]string{}
	for name, value := range secret {
		keys[name] = strings.TrimSpace(string(value))
	}
	if err := CheckPlace(place, keys); err != nil {
		return AsStoreError(err, place.String())
	}
	return nil
}

// EndpointKeys returns the keys of a Secret that CheckPlace reads.
func EndpointKeys() []string {
	return []string{KeyEndpoint, keyEndpoints, KeyAccess, KeySession, KeyServiceAccount, KeyAccount, KeyAccountKey, KeySAS}
}

// checkSigned refuses to send the signature of one storage account to another, or to one that the Secret does not name.
func checkSigned(place Place, keys map[string]string) error {
	if place.Scheme != schemeAzure || keys[KeySAS] == "" || keys[KeyAccountKey] != "" {
		return nil
	}
	named, endpoint, signed := place.Option(OptionAccount), place.Option("endpoint"), keys[KeyAccount]
	switch {
	case named != "" && signed != "" && named != signed:
		return fmt.Errorf("%s=%s: the Secret has a signature for another storage account", OptionAccount, named)
	case !needsAccount(endpoint, keys):
		return nil
	case signed == "":
		return fmt.Errorf("the Secret has a signature (%s), but does not say for which storage account: add %s to it", KeySAS, KeyAccount)
	case endpoint != "" && accountAt(endpoint) != signed:
		return fmt.Errorf("endpoint=%s: the Secret has a signature for another storage account", endpoint)
	}
	return nil
}

// needsAccount reports whether a signature may be sent to an endpoint only for its own storage account. This is so for Azure's endpoints,
// unless the Secret allows the endpoint itself. CheckPlace decides on the others.
func needsAccount(endpoint string, keys map[string]string) bool {
	if endpoint == "" {
		return true
	}
	isAllowed := keys[keyEndpoints] == anyEndpoint || origin(keys[KeyEndpoint]) == origin(endpoint)
	return !isAllowed && isProviders(schemeAzure, normalHost(endpoint))
}

// accountAt returns the storage account that one of Azure's own servers serves. The account's secondary location has the suffix -secondary.
func accountAt(endpoint string) string {
	account, _, _ := strings.Cut(normalHost(endpoint), ".")
	return strings.TrimSuffix(account, "-secondary")
}

// CheckPlace does the same as CheckEndpoint for a parsed URL.
func CheckPlace(place Place, keys map[string]string) error {
	if err := checkSigned(place, keys); err != nil {
		return err
	}
	own, shown := credentialsOf(place.Scheme, keys)
	endpoint := place.Option("endpoint")
	if endpoint == "" {
		return nil
	}
	if err := checkEndpoint(endpoint); err != nil {
		return err
	}
	isPlain := !strings.HasPrefix(strings.ToLower(endpoint), "https://")
	if isPlain && shown {
		return fmt.Errorf("endpoint=%s: tokens and shared access signatures are not sent over plain HTTP, where others on the network could read them", endpoint)
	}
	isAnyAllowed := own && keys[keyEndpoints] == anyEndpoint
	isTrusted := isAnyAllowed || isProviders(place.Scheme, normalHost(endpoint))
	if origin(keys[KeyEndpoint]) == origin(endpoint) || (isTrusted && !isPlain) {
		return nil
	}
	return &EndpointError{endpoint: endpoint}
}

// credentialsOf reports whether the credentials for a kind of store are the Secret's own, not the identity of the Pod. It also reports
// whether they are shown to the server. A key is not shown: it only signs requests.
func credentialsOf(scheme string, keys map[string]string) (own, shown bool) {
	switch scheme {
	case "s3":
		own = keys[KeyAccess] != ""
		return own, !own || keys[KeySession] != ""
	case "gs":
		return keys[KeyServiceAccount] != "", true
	case schemeAzure:
		return keys[KeyAccountKey] != "" || keys[KeySAS] != "", keys[KeyAccountKey] == ""
	}
	return false, false
}

// origin returns an endpoint in the form for comparison. Without a scheme, it is HTTPS.
func origin(endpoint string) string {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Host == "" {
		return ""
	}
	return parsed.Scheme + "://" + normalHost(endpoint)
}

// checkEndpoint refuses a malformed endpoint.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	parsed, err := url.Parse(endpoint)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || strings.ContainsAny(endpoint, "?#@") {
		return fmt.Errorf("endpoint=%s: it is not a URL like https://storage.example.com", endpoint)
	}
	return nil
}

// AsStoreError turns an error of opening a store into a *StoreError.
func AsStoreError(err error, where string) error {
	if _, ok := errors.AsType[*StoreError](err); ok {
		return err
	}
	kind := KindInvalid
	if _, ok := errors.AsType[*EndpointError](err); ok {
		kind = KindEndpoint
	}
	return &StoreError{Kind: kind, Op: "open " + where, Err: err}
}
