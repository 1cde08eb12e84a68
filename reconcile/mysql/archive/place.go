package archive

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

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
