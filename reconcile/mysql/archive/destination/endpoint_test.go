package destination

import (
	"strings"
	"testing"
)

// secretsOf returns Secrets for each kind of store, and whether their credentials are shown to the server.
func secretsOf() map[string]struct {
	url   string
	keys  map[string]string
	shown bool
} {
	return map[string]struct {
		url   string
		keys  map[string]string
		shown bool
	}{
		"s3: a key":                {"s3://b/f?region=r", map[string]string{KeyAccess: "a", KeySecret: "b"}, false},
		"s3: a session":            {"s3://b/f?region=r", map[string]string{KeyAccess: "a", KeySecret: "b", KeySession: "c"}, true},
		"s3: the Pod's identity":   {"s3://b/f?region=r", map[string]string{}, true},
		"gs: an account":           {"gs://b/f?", map[string]string{KeyServiceAccount: "{}"}, true},
		"gs: the Pod's identity":   {"gs://b/f?", map[string]string{}, true},
		"azblob: a key":            {"azblob://b/f?storage_account=mine", map[string]string{KeyAccountKey: "a"}, false},
		"azblob: a signature":      {"azblob://b/f?storage_account=mine", map[string]string{KeyAccount: "mine", KeySAS: "a"}, true},
		"azblob: the Pod's":        {"azblob://b/f?storage_account=mine", map[string]string{}, true},
		"azblob: both, key counts": {"azblob://b/f?storage_account=mine", map[string]string{KeySAS: "a", KeyAccountKey: "a"}, false},
	}
}

// Credentials are sent to the provider, or to a server that their owner names, and never in clear text.
func TestWhereCredentialsGo(t *testing.T) {
	t.Parallel()
	const yours, plain, owner = "https://store.example:9000", "http://store.example:9000", "your own words"
	for name, secret := range secretsOf() {
		scheme, _, _ := strings.Cut(secret.url, ":")
		isOwn := len(secret.keys) > 0
		providers := map[string]string{"s3": "https://s3.il-central-1.amazonaws.com", "gs": "https://storage.googleapis.com", "azblob": "https://mine.blob.core.windows.net"}[scheme]
		for _, test := range []struct {
			endpoint        string
			named, anywhere string
			want            bool
		}{
			{"", "", "", true},
			{providers, "", "", true},
			{providers, "", owner, true},
			{strings.Replace(providers, "https", "http", 1), "", "", false},
			{providers + ".attacker.example", "", "", false},
			{providers + ":444", "", "", false},
			// The lower-case form of this letter is an ASCII i in Go; the host name is a different one.
			{"https://" + strings.Replace(strings.TrimPrefix(providers, "https://"), "i", "%C4%B0", 1), "", "", false},
			{yours, "", "", false},
			{yours, "https://other.example", "", false},
			{yours, "http://store.example:9000", "", false},
			{yours, "https://store.example", "", false},
			{yours, yours, "", true},
			{yours + "/", "store.example:9000", "", true},
			{"https://STORE.example:9000", yours + "/", "", true},
			{yours, "", anyEndpoint, isOwn},
			{yours, "", "ANY", false},
			{plain, "", "", false},
			{plain, "", anyEndpoint, false},
			{plain, yours, "", false},
			{plain, "store.example:9000", "", false},
			{plain, plain, "", !secret.shown},
			{"http://127.0.0.1:9000", "", "", false},
		} {
			keys := map[string][]byte{KeyEndpoint: []byte(test.named + "\n"), keyEndpoints: []byte(test.anywhere)}
			for key, value := range secret.keys {
				keys[key] = []byte(value)
			}
			url := secret.url
			if test.endpoint != "" {
				url += "&endpoint=" + test.endpoint
			}
			err := CheckEndpoint(url, keys)
			if (err == nil) != test.want {
				t.Errorf("%s, endpoint %q, the Secret names %q, endpoints %q: %v", name, test.endpoint, test.named, test.anywhere, err)
			}
		}
	}
}

// Every Azure customer has servers in Azure's domain: a signature for one storage account is not shown to another.
func TestSignatureForAnotherAccount(t *testing.T) {
	t.Parallel()
	type secret = map[string]string
	const azures = ".blob.core.windows.net"
	signed := secret{KeySAS: "sig=a", KeyAccount: "mine"}
	for story, test := range map[string]struct {
		options string
		secret  secret
		told    string
	}{
		"the Secret names the account":       {"", signed, ""},
		"so does the URL":                    {"storage_account=mine", signed, ""},
		"the account's own server":           {"endpoint=https://mine" + azures, signed, ""},
		"the same, in capitals":              {"endpoint=https://MINE" + azures + ".:443/", signed, ""},
		"its secondary location":             {"endpoint=https://mine-secondary" + azures, signed, ""},
		"its server in a zone":               {"endpoint=https://mine.z12.blob.storage.azure.net", signed, ""},
		"another account":                    {"storage_account=evil", signed, "storage_account=evil: the Secret has a signature for another"},
		"its server":                         {"endpoint=https://evil" + azures, signed, "endpoint=https://evil" + azures + ": the Secret has a signature for another"},
		"its server, under the right name":   {"storage_account=mine&endpoint=https://evil" + azures, signed, "signature for another"},
		"not its secondary location":         {"endpoint=https://mine-secondary-secondary" + azures, signed, "not one of the provider's own"},
		"a name in the name":                 {"endpoint=https://evil.privatelink" + azures, signed, "signature for another"},
		"the account is not named":           {"", secret{KeySAS: "sig=a"}, "add AZURE_STORAGE_ACCOUNT to it"},
		"only the URL names the account":     {"storage_account=evil", secret{KeySAS: "sig=a"}, "add AZURE_STORAGE_ACCOUNT to it"},
		"only the URL names the server":      {"storage_account=evil&endpoint=https://evil" + azures, secret{KeySAS: "sig=a"}, "add AZURE_STORAGE_ACCOUNT to it"},
		"an endpoint that is not in the URL": {"storage_account=evil", secret{KeySAS: "sig=a", KeyEndpoint: "https://mine" + azures}, "add AZURE_STORAGE_ACCOUNT to it"},
		"any endpoint, but the URL has none": {"storage_account=evil", secret{KeySAS: "sig=a", keyEndpoints: anyEndpoint}, "add AZURE_STORAGE_ACCOUNT to it"},
		"the Secret names the server":        {"storage_account=mine&endpoint=https://mine" + azures, secret{KeySAS: "sig=a", KeyEndpoint: "mine" + azures}, ""},
		"a user's own server":                {"storage_account=mine&endpoint=https://store.example", secret{KeySAS: "sig=a", KeyEndpoint: "store.example"}, ""},
		"any server":                         {"endpoint=https://yours" + azures, secret{KeySAS: "sig=a", KeyAccount: "mine", keyEndpoints: anyEndpoint}, ""},
		"a server of another owner":          {"storage_account=mine&endpoint=https://store.example", secret{KeySAS: "sig=a"}, "not one of the provider's own"},
		"a key, which only signs":            {"storage_account=yours", secret{KeyAccountKey: "YQ==", KeyAccount: "mine"}, ""},
		"a key, too, which takes precedence": {"storage_account=yours", secret{KeySAS: "sig=a", KeyAccountKey: "YQ=="}, ""},
	} {
		keys := map[string][]byte{}
		for key, value := range test.secret {
			keys[key] = []byte(value + "\n")
		}
		err := CheckEndpoint("azblob://b/f?"+test.options, keys)
		if (err == nil) != (test.told == "") || err != nil && !strings.Contains(err.Error(), test.told) {
			t.Errorf("%s: %v, want %q", story, err, test.told)
		}
	}
	if err := CheckEndpoint("s3://b/f?region=r", map[string][]byte{KeyAccess: []byte("a"), KeySecret: []byte("b"), KeySAS: []byte("sig=a")}); err != nil {
		t.Errorf("a signature that is not used: %v", err)
	}
}
