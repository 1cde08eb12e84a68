package archive

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// PlaceOf returns a key for the folder that a URL names: two URLs of the same folder have the same key, however they are spelled.
//
// The key has the scheme, the endpoint's host, the bucket and the folder. It has no endpoint where that is one of the provider's own, and no
// region and no storage account, because a Secret may name these instead of the URL. So two places that differ in nothing else have one key.
// For a file URL the key does not say which volume it is in. The error is about a URL that Open refuses, too.
func PlaceOf(address string) (string, error) {
	place, err := parseURL(address)
	if err != nil {
		return "", err
	}
	endpoint := place.option("endpoint")
	if err := checkEndpoint(endpoint); err != nil {
		return "", err
	}
	host := normalHost(endpoint)
	if isProviders(place.scheme, host) {
		host = ""
	}
	return place.scheme + "://" + host + "/" + place.bucket + "/" + place.folder, nil
}

// normalHost is the host of an endpoint, with its port unless that is the scheme's own, and the path if there is one.
func normalHost(endpoint string) string {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Host == "" {
		return ""
	}
	host, port := strings.TrimSuffix(strings.Map(lower, parsed.Hostname()), "."), parsed.Port()
	isDefault := port == "" || (parsed.Scheme == "https" && port == "443") || (parsed.Scheme == "http" && port == "80")
	switch {
	case !isDefault:
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return host + strings.TrimRight(parsed.Path, "/")
}

// lower is the small letter of an ASCII one. Others stay: of the small letters of Unicode some are ASCII though their capitals are not, and a name
// with such a capital is that of another host.
func lower(letter rune) rune {
	if 'A' <= letter && letter <= 'Z' {
		return letter - 'A' + 'a'
	}
	return letter
}

// isProviders says whether a host, as normalHost returns it, serves the storage of the provider that a scheme belongs to. A host that merely is
// in the provider's domain is not enough: customers' machines and load balancers have names there, too.
//
// The names are those of "Amazon Simple Storage Service endpoints and quotas", "AWS PrivateLink for Amazon S3", Google's "Cloud Storage request
// endpoints", and Azure's "Storage account overview".
func isProviders(scheme, host string) bool {
	const label = `[a-z0-9-]+`
	var pattern string
	switch scheme {
	case "s3":
		const amazon = `amazonaws\.(com|com\.cn|eu)`
		pattern = `s3(-accelerate|-external-1)?(\.dualstack)?\.amazonaws\.com` +
			`|s3(-fips)?(\.dualstack)?[.-]` + label + `\.` + amazon +
			`|((bucket|accesspoint)\.)?vpce-` + label + `\.s3\.` + label + `\.vpce\.` + amazon
	case "gs":
		pattern = `storage\.googleapis\.com|storage\.` + label + `\.rep\.googleapis\.com`
	case schemeAzure:
		pattern = `[a-z0-9]{3,24}(-secondary)?\.(z[0-9]+\.blob\.storage\.azure\.net|(privatelink\.)?blob\.core\.(windows\.net|chinacloudapi\.cn|usgovcloudapi\.net))`
	default:
		return false
	}
	return regexp.MustCompile(`^(` + pattern + `)$`).MatchString(host)
}
