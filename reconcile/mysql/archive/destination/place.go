package destination

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	schemeAzure = "azblob"
	// OptionAccount is the option that names the storage account in a URL, so that a Pod with an identity needs no Secret.
	OptionAccount = "storage_account"
)

// Place is a parsed URL.
type Place struct {
	Scheme, Bucket string
	// Folder is clean and has no slash at either end. It may be empty: the bucket itself.
	Folder  string
	options url.Values
}

// String returns the URL without options, for messages.
func (p Place) String() string { return p.Scheme + "://" + p.Bucket + "/" + p.Folder }

// Key returns the name of one of the folder's objects in the bucket.
func (p Place) Key(name string) string { return path.Join(p.Folder, name) }

// Option returns a value of the URL's query.
func (p Place) Option(name string) string { return p.options.Get(name) }

// optionsOf returns the options that a scheme has, and whether the scheme is known.
func optionsOf(scheme string) ([]string, bool) {
	switch scheme {
	case "file":
		return nil, true
	case "s3":
		return []string{"region", "endpoint", "use_path_style"}, true
	case "gs":
		return []string{"endpoint"}, true
	case schemeAzure:
		return []string{OptionAccount, "endpoint"}, true
	}
	return nil, false
}

// Parse reads a destination's URL. It refuses what it does not know: a mistyped option must not be ignored silently.
func Parse(text string) (Place, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return Place{}, fmt.Errorf("parse URL: %w", err)
	}
	allowed, known := optionsOf(parsed.Scheme)
	if !known {
		return Place{}, fmt.Errorf("%q: the scheme must be s3, gs, azblob or file", text)
	}
	if parsed.User != nil {
		return Place{}, fmt.Errorf("%q: credentials belong in the Secret, not in the URL", parsed.Redacted())
	}
	options, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return Place{}, fmt.Errorf("parse the options of the URL: %w", err)
	}
	for name := range options {
		if !slices.Contains(allowed, name) {
			return Place{}, fmt.Errorf("%q: there is no option %q for %s URLs", text, name, parsed.Scheme)
		}
	}
	if (parsed.Host == "") != (parsed.Scheme == "file") {
		return Place{}, fmt.Errorf("%q: write SCHEME://BUCKET/FOLDER, or file:///FOLDER", text)
	}
	if slices.Contains(strings.Split(parsed.Path, "/"), "..") || strings.Contains(parsed.Path, "\x00") || parsed.Fragment != "" {
		return Place{}, fmt.Errorf("%q: the folder is not a plain path", text)
	}
	folder := strings.Trim(path.Clean("/"+parsed.Path), "/")
	return Place{Scheme: parsed.Scheme, Bucket: parsed.Host, Folder: folder, options: options}, nil
}

// normalHost returns the host of an endpoint, with its port unless it is the scheme's default port, and with its path if there is one.
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

// lower returns the lower-case letter of an ASCII letter. Other letters stay: some Unicode capitals have an ASCII lower-case letter, and a
// name with such a capital is another host's.
func lower(letter rune) rune {
	if 'A' <= letter && letter <= 'Z' {
		return letter - 'A' + 'a'
	}
	return letter
}

// isProviders reports whether a host, as normalHost returns it, serves the storage of the scheme's provider. A host in the provider's
// domain is not enough: customers' machines and load balancers have names there, too.
//
// The names are those of "Amazon Simple Storage Service endpoints and quotas", "AWS PrivateLink for Amazon S3", Google's "Cloud Storage
// request endpoints", and Azure's "Storage account overview".
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
