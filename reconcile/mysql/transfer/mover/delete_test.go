package mover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// TestDeleteWaitsForASecretThatIsPutRight: a user may be about to complete half a pair of keys. The operator gives the data up after the
// last attempt, not after the first.
func TestDeleteWaitsForASecretThatIsPutRight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url  string
		keys map[string]string
		says string
	}{
		"half a pair":                    {"s3://bucket/f?region=r", map[string]string{"AWS_ACCESS_KEY_ID": "a"}, "AWS_SECRET_ACCESS_KEY"},
		"truncated JSON":                 {"gs://bucket/f", map[string]string{"service-account.json": `{"type":`}, "not the key of a Google service account"},
		"a signature without an account": {"azblob://bucket/f?storage_account=shop", map[string]string{"AZURE_STORAGE_SAS_TOKEN": "sig"}, "AZURE_STORAGE_ACCOUNT"},
	} {
		dir := t.TempDir()
		for key, value := range test.keys {
			if err := os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env := Environment{URL: test.url, CredentialsDir: dir, UID: "0a1b", Instance: "nightly-1", Log: logr.Discard()}
		outcome, err := RunDelete(t.Context(), env)
		done, status := Ended(outcome, err, protocol.ReasonDestinationUnavailable)
		if status != protocol.ExitRetry || done.Reason != protocol.ReasonDestinationRefused || !strings.Contains(done.Message, test.says) {
			t.Errorf("%s: exit status %d because of %s: %s", name, status, done.Reason, done.Message)
		}
	}
}
