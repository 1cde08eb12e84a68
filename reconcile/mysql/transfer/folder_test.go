package transfer

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func TestWhoseFolderAURLNames(t *testing.T) {
	t.Parallel()
	nightly := types.NamespacedName{Namespace: "shop", Name: "nightly-1"}
	for url, want := range map[string]types.NamespacedName{
		"s3://b/shop/db/nightly-1":                                                   nightly,
		"s3://b/mysql/all/shop/db/nightly-1?region=eu":                               nightly,
		"s3://b/shop/db/nightly-1/?endpoint=https%3A%2F%2Fs3.example.com&region=eu":  nightly,
		"s3://b/shop/db/nightly-1?region=eu&endpoint=https://minio.storage.svc:9000": nightly,
		"s3://alias-of-the-bucket//shop/./db/%6eightly-1//":                          nightly,
		"file:///shop/db/nightly-1":                                                  nightly,
		"s3://b/shop/db/nightly-1?there-is=no-such-option":                           nightly,
		"s3://b/nightly-1":             {},
		"s3://b":                       {},
		"":                             {},
		"s3://b/shop/db/%zz":           {},
		"s3://b/shop/db/nightly-1\x7f": {},
	} {
		if got, found := InstanceOf(url); got != want || found != (want != types.NamespacedName{}) {
			t.Errorf("InstanceOf(%q) = %v, %v, want %v", url, got, found, want)
		}
	}
}

// TestInstanceOfReadsWhatLocationOfWrites: otherwise retention would not protect the backups that clusters name by URL.
func TestInstanceOfReadsWhatLocationOfWrites(t *testing.T) {
	t.Parallel()
	who := Identity{Namespace: "shop", Cluster: "db", Instance: "nightly-1", Schedule: "nightly"}
	for _, base := range []string{"", "s3://b", "s3://b/?region=eu", "gs://b/a%20b/c//", "azblob://c/x?storage_account=y", "file:///mysql"} {
		settings := v1.BackupSettings{Destination: &v1.BackupDestination{URL: base}}
		location, err := LocationOf(settings, who)
		if err != nil {
			t.Fatal(err)
		}
		if got, found := InstanceOf(location.URL); !found || got != (types.NamespacedName{Namespace: "shop", Name: "nightly-1"}) {
			t.Errorf("InstanceOf(%q) = %v, %v", location.URL, got, found)
		}
	}
}
