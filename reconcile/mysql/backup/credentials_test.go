package backup

import (
	"net/url"
	"testing"

	"filippo.io/age"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

func TestKeysOfDestinations(t *testing.T) {
	t.Parallel()
	const id, key = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
	for name, test := range map[string]struct {
		url  string
		keys []string
		want bool
	}{
		"s3: a pair":                                                    {"s3://bucket", []string{id, key}, true},
		"s3: a pair and certificates":                                   {"s3://bucket", []string{id, key, keyAuthorities}, true},
		"s3: certificates, the Pod's identity":                          {"s3://bucket", []string{keyAuthorities}, true},
		"s3: a region, the Pod's identity":                              {"s3://bucket", []string{"AWS_REGION"}, true},
		"s3: a region and certificates":                                 {"s3://bucket", []string{"AWS_REGION", keyAuthorities}, true},
		"s3: an endpoint, the Pod's identity":                           {"s3://bucket", []string{keyEndpoint}, true},
		"s3: half a pair and a region":                                  {"s3://bucket", []string{id, "AWS_REGION"}, false},
		"s3: half a pair":                                               {"s3://bucket", []string{id}, false},
		"s3: half a pair and certificates":                              {"s3://bucket", []string{key, keyAuthorities}, false},
		"s3: a token alone":                                             {"s3://bucket", []string{"AWS_SESSION_TOKEN"}, false},
		"s3: nothing":                                                   {"s3://bucket", nil, false},
		"gs: an account":                                                {"gs://bucket", []string{"service-account.json"}, true},
		"gs: the keys of another cloud":                                 {"gs://bucket", []string{id, key}, false},
		"azblob: an account and its key":                                {"azblob://bucket", []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"}, true},
		"azblob: an account and a signature":                            {"azblob://bucket", []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_SAS_TOKEN", keyAuthorities}, true},
		"azblob: an account, the Pod's identity":                        {"azblob://bucket", []string{"AZURE_STORAGE_ACCOUNT"}, true},
		"azblob: the URL has the account":                               {"azblob://bucket?storage_account=mine", []string{"AZURE_STORAGE_KEY"}, true},
		"azblob: the URL has the account, and nothing is in the Secret": {"azblob://bucket?storage_account=mine", nil, false},
		"azblob: a signature, and the URL has the account":              {"azblob://bucket?storage_account=mine", []string{"AZURE_STORAGE_SAS_TOKEN"}, false},
		"azblob: a signature and its account":                           {"azblob://bucket?storage_account=mine", []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_SAS_TOKEN"}, true},
		"azblob: a signature for the user's own server":                 {"azblob://bucket?storage_account=mine&endpoint=https://store.example", []string{"AZURE_STORAGE_SAS_TOKEN", keyEndpoint}, true},
		"azblob: a key without an account":                              {"azblob://bucket", []string{"AZURE_STORAGE_KEY", keyAuthorities}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			destination, err := url.Parse(test.url)
			if err != nil {
				t.Fatal(err)
			}
			data := map[string][]byte{"unrelated": []byte("x"), "AWS_REGION": nil}
			for _, one := range test.keys {
				data[one] = []byte("x")
			}
			if got := keysOf(destination).areIn(data); got != test.want {
				t.Errorf("enough is %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhichKeyABackupsPodIsGiven(t *testing.T) {
	t.Parallel()
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	public, private := []byte(own.Recipient().String()), []byte(own.String())
	for name, test := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"it can only encrypt":        {map[string][]byte{protocol.KeyRecipient: public}, protocol.KeyRecipient},
		"it could decrypt, too":      {map[string][]byte{protocol.KeyRecipient: public, protocol.KeyIdentity: private}, protocol.KeyRecipient},
		"nothing else encrypts":      {map[string][]byte{protocol.KeyIdentity: private}, protocol.KeyIdentity},
		"only a comment in addition": {map[string][]byte{protocol.KeyRecipient: []byte("# none yet"), protocol.KeyIdentity: private}, protocol.KeyIdentity},
		"there is no key":            {nil, protocol.KeyRecipient},
	} {
		if got := keyFor(secret{found: true, data: test.data}); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
