package transfer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func TestLocationOfGivesEachInstanceItsOwnFolder(t *testing.T) {
	t.Parallel()
	who := Identity{Namespace: "shop", Cluster: "db", Schedule: "nightly", Instance: "nightly-1"}
	byHand := Identity{Namespace: "shop", Cluster: "db", Instance: "before-upgrade"}
	to := func(d v1.BackupDestination) v1.BackupSettings { return v1.BackupSettings{Destination: &d} }
	tests := map[string]struct {
		settings v1.BackupSettings
		who      Identity
		want     v1.BackupLocation
	}{
		"no settings: the schedule's volume":         {v1.BackupSettings{}, who, v1.BackupLocation{URL: "file:///shop/db/nightly-1", Claim: "nightly"}},
		"no settings, by hand: the cluster's volume": {v1.BackupSettings{}, byHand, v1.BackupLocation{URL: "file:///shop/db/before-upgrade", Claim: "db-backups"}},
		"the user's own claim":                       {to(v1.BackupDestination{Claim: "nfs"}), who, v1.BackupLocation{URL: "file:///shop/db/nightly-1", Claim: "nfs"}},
		"a folder of it":                             {to(v1.BackupDestination{Claim: "nfs", URL: "file:///mysql/"}), who, v1.BackupLocation{URL: "file:///mysql/shop/db/nightly-1", Claim: "nfs"}},
		"a folder that would leave the volume":       {to(v1.BackupDestination{Claim: "nfs", URL: "file:///../../etc"}), who, v1.BackupLocation{URL: "file:///etc/shop/db/nightly-1", Claim: "nfs"}},
		"a bucket, and its options stay":             {to(v1.BackupDestination{URL: "s3://b?region=eu&use_path_style=true", Secret: "s3"}), who, v1.BackupLocation{URL: "s3://b/shop/db/nightly-1?region=eu&use_path_style=true", Secret: "s3"}},
		"a prefix in a bucket, a cloud identity":     {to(v1.BackupDestination{URL: "gs://b/prod/", ServiceAccountName: "cloud"}), who, v1.BackupLocation{URL: "gs://b/prod/shop/db/nightly-1", ServiceAccountName: "cloud"}},
		"encrypted": {
			v1.BackupSettings{Encryption: &v1.BackupEncryption{Secret: "keys"}}, who,
			v1.BackupLocation{URL: "file:///shop/db/nightly-1", Claim: "nightly", EncryptionSecret: "keys"},
		},
	}
	for name, test := range tests {
		got, err := LocationOf(test.settings, test.who)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := LocationOf(to(v1.BackupDestination{URL: "s3://b%zz"}), who); err == nil {
		t.Error("an invalid URL is accepted")
	}
}

func TestResolveTakesTheInstanceThenTheScheduleThenDefaults(t *testing.T) {
	t.Parallel()
	hour, class := int64(3600), "slow"
	cluster := v1.MySQLClusterSpec{Storage: resource.MustParse("5Gi")}
	schedule := &v1.MySQLBackupSchedule{Spec: v1.MySQLBackupScheduleSpec{BackupSettings: v1.BackupSettings{
		StorageClassName: &class, Encryption: &v1.BackupEncryption{Secret: "keys"}, DeletionPolicy: v1.DeleteData, Destination: &v1.BackupDestination{Claim: "nfs"},
	}}}
	own := v1.MySQLBackupInstanceSpec{BackupSettings: v1.BackupSettings{ActiveDeadlineSeconds: &hour, Destination: &v1.BackupDestination{URL: "s3://b"}}}
	want := v1.BackupSettings{
		Storage: resource.MustParse("5Gi"), StorageClassName: &class, Encryption: &v1.BackupEncryption{Secret: "keys"},
		DeletionPolicy: v1.DeleteData, Destination: &v1.BackupDestination{URL: "s3://b"}, ActiveDeadlineSeconds: &hour,
	}
	if diff := cmp.Diff(want, Resolve(own, schedule, cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	day := int64(86400)
	want = v1.BackupSettings{Storage: resource.MustParse("5Gi"), ActiveDeadlineSeconds: &day, DeletionPolicy: v1.RetainData}
	if diff := cmp.Diff(want, Resolve(v1.MySQLBackupInstanceSpec{}, nil, cluster)); diff != "" {
		t.Errorf("without anything (-want +got):\n%s", diff)
	}
}

func TestStatusProgressIsForPeople(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		progress protocol.Progress
		percent  int32
		summary  string
	}{
		"begun":               {protocol.Progress{}, 0, "0"},
		"total not known":     {protocol.Progress{Bytes: 310 << 20, BytesPerSecond: 180 << 20}, 0, "310Mi, 180Mi/s"},
		"in progress":         {protocol.Progress{Bytes: 541165880, TotalBytes: 1288490189, BytesPerSecond: 180 << 20}, 42, "42% of 1.2Gi, 180Mi/s"},
		"more than the total": {protocol.Progress{Bytes: 3 << 30, TotalBytes: 2 << 30}, 99, "99% of 2Gi"},
		"nonsense":            {protocol.Progress{Bytes: -1, TotalBytes: -1, BytesPerSecond: -1}, 0, "0"},
		"huge":                {protocol.Progress{Bytes: 1 << 60, TotalBytes: 1 << 62}, 25, "25% of 4Ei"},
	}
	for name, test := range tests {
		got := StatusProgress(test.progress)
		if got.Percent != test.percent || got.Summary != test.summary {
			t.Errorf("%s: %d%%, %q; want %d%%, %q", name, got.Percent, got.Summary, test.percent, test.summary)
		}
	}
}

func TestSizesAreForPeople(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0", 980: "980", 1023: "1023", 1024: "1Ki", 1536: "1.5Ki", 180 << 20: "180Mi", 1288490189: "1.2Gi", 1 << 40: "1Ti",
		1<<20 - 1: "1Mi", 1 << 30: "1Gi", 99<<30 + 1<<29: "99.5Gi", 1 << 62: "4Ei",
	} {
		if got := protocol.Size(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
}
