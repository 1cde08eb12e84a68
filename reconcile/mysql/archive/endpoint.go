package archive

import (
	"fmt"
	"net/url"
	"strings"
)

const (
	// keyEndpoint is the Secret's key with the one server, beside the provider's own, that the credentials may go to.
	keyEndpoint = "endpoint"
	// keyEndpoints with the value anyEndpoint lets the Secret's own credentials go to every server that a URL names, over HTTPS.
	keyEndpoints = "endpoints"
	anyEndpoint  = "any"
)

// endpointError says that credentials do not go to the endpoint of a URL, because nobody who owns them has said that they may.
type endpointError struct{ endpoint string }

func (e *endpointError) Error() string {
	return fmt.Sprintf("credentials are not sent to endpoint=%s, which is none of the provider's own servers and is not named by the Secret", e.endpoint)
}

// CheckEndpoint says whether credentials may be sent where a URL says. Whoever writes the URL need not be who owns the credentials: without this
// the one could have those of the other sent to a server of their own. So they go
//   - to the provider's own servers, over HTTPS;
//   - to the endpoint that the Secret names by its key "endpoint". Over plain HTTP only what is signed with them goes, never a token;
//   - with "endpoints: any" in the Secret to every endpoint, over HTTPS. This does not count for the identity of the Pod.
//
// A provider's servers are every customer's. A key only signs, but a shared access signature is shown to the storage account that is asked: of the
// provider's it goes to the one that the Secret names.
//
// The Secret may be empty: the credentials are the identity of the Pod then. Errors: *StoreError, of KindEndpoint where the Secret does not name the
// endpoint.
func CheckEndpoint(destination string, secret map[string][]byte) error {
	place, err := parseURL(destination)
	if err != nil {
		return opening(err, "the destination")
	}
	keys := map[string]string{}
	for name, value := range secret {
		keys[name] = strings.TrimSpace(string(value))
	}
	if err := checkAudience(place, keys); err != nil {
		return opening(err, place.String())
	}
	return nil
}

// endpointKeys are the keys of a Secret that checkAudience looks at.
func endpointKeys() []string {
	return []string{keyEndpoint, keyEndpoints, keyAccess, keySession, keyServiceAccount, keyAccount, keyAccountKey, keySAS}
}

// checkSigned refuses to show the signature for one storage account to another, or to one that the Secret does not name.
func checkSigned(place place, keys map[string]string) error {
	if place.scheme != schemeAzure || keys[keySAS] == "" || keys[keyAccountKey] != "" {
		return nil
	}
	named, endpoint, signed := place.option(optionAccount), place.option("endpoint"), keys[keyAccount]
	switch {
	case named != "" && signed != "" && named != signed:
		return fmt.Errorf("%s=%s: the Secret has a signature for another storage account", optionAccount, named)
	case !needsAccount(endpoint, keys):
		return nil
	case signed == "":
		return fmt.Errorf("the Secret has a signature (%s), but does not say for which storage account: add %s to it", keySAS, keyAccount)
	case endpoint != "" && accountAt(endpoint) != signed:
		return fmt.Errorf("endpoint=%s: the Secret has a signature for another storage account", endpoint)
	}
	return nil
}

// needsAccount says whether a signature may go to an endpoint for its storage account alone: to one of Azure's, unless the Secret allows the endpoint
// itself. The others are checkAudience's business.
func needsAccount(endpoint string, keys map[string]string) bool {
	if endpoint == "" {
		return true
	}
	isAllowed := keys[keyEndpoints] == anyEndpoint || origin(keys[keyEndpoint]) == origin(endpoint)
	return !isAllowed && isProviders(schemeAzure, normalHost(endpoint))
}

// accountAt is the storage account that one of Azure's own servers serves. It may be read at a second place.
func accountAt(endpoint string) string {
	account, _, _ := strings.Cut(normalHost(endpoint), ".")
	return strings.TrimSuffix(account, "-secondary")
}

// checkAudience is CheckEndpoint.
func checkAudience(place place, keys map[string]string) error {
	if err := checkSigned(place, keys); err != nil {
		return err
	}
	own, shown := credentialsOf(place.scheme, keys)
	endpoint := place.option("endpoint")
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
	isTrusted := isAnyAllowed || isProviders(place.scheme, normalHost(endpoint))
	if origin(keys[keyEndpoint]) == origin(endpoint) || (isTrusted && !isPlain) {
		return nil
	}
	return &endpointError{endpoint: endpoint}
}

// credentialsOf says of the credentials for a kind of store whether they are the Secret's own or the identity of the Pod, and whether they are
// shown to the server. A key stays here, and only signs what is sent.
func credentialsOf(scheme string, keys map[string]string) (own, shown bool) {
	switch scheme {
	case "s3":
		own = keys[keyAccess] != ""
		return own, !own || keys[keySession] != ""
	case "gs":
		return keys[keyServiceAccount] != "", true
	case schemeAzure:
		return keys[keyAccountKey] != "" || keys[keySAS] != "", keys[keyAccountKey] == ""
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
