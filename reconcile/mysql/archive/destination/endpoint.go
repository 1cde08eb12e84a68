package destination

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// EndpointError says that credentials do not go to the endpoint of a URL, because nobody who owns them has said that they may.
type EndpointError struct{ endpoint string }

func (e *EndpointError) Error() string {
	return fmt.Sprintf("credentials are not sent to endpoint=%s, which is none of the provider's own servers and is not named by the Secret", e.endpoint)
}

// CheckEndpoint says whether credentials may be sent where a URL says. Whoever writes the URL need not be who owns the credentials: without
// this the one could have those of the other sent to a server of their own. So they go
//   - to the provider's own servers, over HTTPS;
//   - to the endpoint that the Secret names by its key "endpoint". Over plain HTTP only what is signed with them goes, never a token;
//   - with "endpoints: any" in the Secret to every endpoint, over HTTPS. This does not count for the identity of the Pod.
//
// A provider's servers are every customer's. A key only signs, but a shared access signature is shown to the storage account that is asked:
// of the provider's it goes to the one that the Secret names.
//
// The Secret may be empty: the credentials are the identity of the Pod then. Errors: *StoreError, of KindEndpoint where the Secret does not
// name the endpoint.
func CheckEndpoint(destination string, secret map[string][]byte) error {
	place, err := Parse(destination)
	if err != nil {
		return Opening(err, "the destination")
	}
	keys := map[string]string{}
	for name, value := range secret {
		keys[name] = strings.TrimSpace(string(value))
	}
	if err := CheckAudience(place, keys); err != nil {
		return Opening(err, place.String())
	}
	return nil
}

// EndpointKeys are the keys of a Secret that CheckAudience looks at.
func EndpointKeys() []string {
	return []string{KeyEndpoint, keyEndpoints, KeyAccess, KeySession, KeyServiceAccount, KeyAccount, KeyAccountKey, KeySAS}
}

// checkSigned refuses to show the signature for one storage account to another, or to one that the Secret does not name.
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

// needsAccount says whether a signature may go to an endpoint for its storage account alone: to one of Azure's, unless the Secret allows
// the endpoint itself. The others are CheckAudience's business.
func needsAccount(endpoint string, keys map[string]string) bool {
	if endpoint == "" {
		return true
	}
	isAllowed := keys[keyEndpoints] == anyEndpoint || origin(keys[KeyEndpoint]) == origin(endpoint)
	return !isAllowed && isProviders(schemeAzure, normalHost(endpoint))
}

// accountAt is the storage account that one of Azure's own servers serves. It may be read at a second place.
func accountAt(endpoint string) string {
	account, _, _ := strings.Cut(normalHost(endpoint), ".")
	return strings.TrimSuffix(account, "-secondary")
}

// CheckAudience is CheckEndpoint.
func CheckAudience(place Place, keys map[string]string) error {
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
		return fmt.Errorf("endpoint=%s: tokens and shared access signatures are not sent over plain HTTP, where anybody on the way could read them", endpoint)
	}
	isAnyAllowed := own && keys[keyEndpoints] == anyEndpoint
	isTrusted := isAnyAllowed || isProviders(place.Scheme, normalHost(endpoint))
	if origin(keys[KeyEndpoint]) == origin(endpoint) || (isTrusted && !isPlain) {
		return nil
	}
	return &EndpointError{endpoint: endpoint}
}

// credentialsOf says of the credentials for a kind of store whether they are the Secret's own or the identity of the Pod, and whether they
// are shown to the server. A key stays here, and only signs what is sent.
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

// origin is an endpoint as it is compared: without a scheme it is one of HTTPS.
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

// checkEndpoint refuses what cannot be reached.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	parsed, err := url.Parse(endpoint)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || strings.ContainsAny(endpoint, "?#@") {
		return fmt.Errorf("endpoint=%s: it is no URL like https://storage.example.com", endpoint)
	}
	return nil
}

// Opening returns an error of opening a store as a *StoreError.
func Opening(err error, where string) error {
	if _, ok := errors.AsType[*StoreError](err); ok {
		return err
	}
	kind := KindInvalid
	if _, ok := errors.AsType[*EndpointError](err); ok {
		kind = KindEndpoint
	}
	return &StoreError{Kind: kind, Op: "open " + where, Err: err}
}
