package mysqlbackupinstance

import "testing"

func TestKeysOfDestinations(t *testing.T) {
	t.Parallel()
	const id, key = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
	for name, test := range map[string]struct {
		scheme string
		keys   []string
		want   bool
	}{
		"s3: a pair":                           {"s3", []string{id, key}, true},
		"s3: a pair and certificates":          {"s3", []string{id, key, keyAuthorities}, true},
		"s3: certificates, the Pod's identity": {"s3", []string{keyAuthorities}, true},
		"s3: half a pair":                      {"s3", []string{id}, false},
		"s3: half a pair and certificates":     {"s3", []string{key, keyAuthorities}, false},
		"s3: a token alone":                    {"s3", []string{"AWS_SESSION_TOKEN"}, false},
		"s3: nothing":                          {"s3", nil, false},
		"gs: an account":                       {"gs", []string{"service-account.json"}, true},
		"gs: the keys of another cloud":        {"gs", []string{id, key}, false},
		"azblob: an account and its key":       {"azblob", []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"}, true},
		"azblob: an account and a signature":   {"azblob", []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_SAS_TOKEN", keyAuthorities}, true},
		"azblob: an account alone":             {"azblob", []string{"AZURE_STORAGE_ACCOUNT"}, false},
		"azblob: a key without an account":     {"azblob", []string{"AZURE_STORAGE_KEY", keyAuthorities}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := map[string][]byte{"unrelated": []byte("x"), "AWS_REGION": nil}
			for _, one := range test.keys {
				data[one] = []byte("x")
			}
			if got := holdsOne(data, keySets(test.scheme)); got != test.want {
				t.Errorf("enough is %t, want %t", got, test.want)
			}
		})
	}
}
