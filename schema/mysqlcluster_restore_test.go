package schema

import (
	"strings"
	"testing"
)

// TestClusterRestores lists what a cluster may start from, and what is refused with which message. No message means that it is accepted.
func TestClusterRestores(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLCluster")
	const url = "s3://backups/mysql/shop/orders/nightly-2026-11-21-02-30-00"
	for story, test := range map[string]struct {
		spec string
		told []string
	}{
		"a backup by name":              {"fromBackup: nightly-2026-11-21-02-30-00", nil},
		"with other credentials":        {"fromBackup: b, restore: {secret: s, encryptionSecret: k, serviceAccountName: a, bandwidthLimit: 50Mi}", nil},
		"and no other backup":           {"fromBackup: b, restore: {checksum: 'sha256:" + strings.Repeat("0a", 32) + "'}", nil},
		"half a checksum":               {"fromBackup: b, restore: {checksum: 'sha256:0a'}", []string{"spec.restore.checksum must be sha256: and 64 hexadecimal digits"}},
		"from another claim":            {"fromBackup: b, restore: {claim: c}", nil},
		"a backup by URL":               {"fromBackupURL: '" + url + "?region=eu-central-1', restore: {secret: s}", nil},
		"a backup by URL and identity":  {"fromBackupURL: 'gs://backups/shop/orders/b'", nil},
		"a backup in a volume":          {"fromBackupURL: 'file:///shop/orders/b', restore: {claim: c}", nil},
		"a long URL":                    {"fromBackupURL: 's3://b/" + strings.Repeat("a", 2000) + "'", nil},
		"a URL that is too long":        {"fromBackupURL: 's3://b/" + strings.Repeat("a", 2048) + "'", []string{"spec.fromBackupURL", "2048"}},
		"both":                          {"fromBackup: b, fromBackupURL: '" + url + "'", []string{"spec.fromBackup and spec.fromBackupURL both say where to start from"}},
		"neither":                       {"restore: {secret: s}", []string{"spec.restore is for reading the backup", "remove spec.restore"}},
		"nothing to restore with":       {"fromBackup: b, restore: {}", []string{"spec.restore"}},
		"a volume without a claim":      {"fromBackupURL: 'file:///shop/orders/b'", []string{"spec.restore.claim is missing"}},
		"a volume with a Secret only":   {"fromBackupURL: 'file:///shop/orders/b', restore: {secret: s}", []string{"spec.restore.claim is missing"}},
		"a bucket with a claim":         {"fromBackupURL: '" + url + "', restore: {claim: c}", []string{"spec.restore.claim is for a file:// URL"}},
		"a website":                     {"fromBackupURL: 'https://example.com/b'", []string{"spec.fromBackupURL must begin with s3://"}},
		"credentials in the URL":        {"fromBackupURL: 's3://key:secret@backups/b'", []string{"spec.fromBackupURL must not hold credentials", "spec.restore.secret"}},
		"no bucket":                     {"fromBackupURL: 's3://'", []string{"spec.fromBackupURL must name the bucket"}},
		"a volume's host":               {"fromBackupURL: 'file://shop/b', restore: {claim: c}", []string{"spec.fromBackupURL must have three slashes"}},
		"a detour":                      {"fromBackupURL: 's3://backups/../b'", []string{"the path without '.' and '..'"}},
		"a Secret elsewhere":            {"fromBackup: b, restore: {secret: other/s}", []string{"spec.restore.secret must be the name of a Secret in the same namespace"}},
		"a key elsewhere":               {"fromBackup: b, restore: {encryptionSecret: other/s}", []string{"spec.restore.encryptionSecret must be the name of a Secret"}},
		"a claim elsewhere":             {"fromBackup: b, restore: {claim: other/c}", []string{"spec.restore.claim must be the name of a PersistentVolumeClaim"}},
		"an account elsewhere":          {"fromBackup: b, restore: {serviceAccountName: 'n:a'}", []string{"spec.restore.serviceAccountName must be the name of a service account"}},
		"a limit of nothing":            {"fromBackup: b, restore: {bandwidthLimit: 0}", []string{"spec.restore.bandwidthLimit must be bytes per second"}},
		"a namespace of another backup": {"fromBackup: b, restore: {namespace: n}", []string{"unknown field spec.restore.namespace"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(cluster("a", "secret: s, "+test.spec))
			wantRefusal(t, err, test.told...)
		})
	}
}

// TestClusterRestoreChanges: the backup that a cluster starts from is set once. The settings for reading it may change until it is read.
func TestClusterRestoreChanges(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLCluster")
	const failed, complete = "status: {restore: {phase: Failed}}\n", "status: {restore: {phase: Completed}}\n"
	for story, test := range map[string]struct {
		before, after, status string
		told                  []string
	}{
		"a URL set later":              {"", ", fromBackupURL: 's3://b/c'", "", []string{"spec.fromBackupURL applies only while"}},
		"another URL":                  {", fromBackupURL: 's3://b/c'", ", fromBackupURL: 's3://b/d'", "", []string{"spec.fromBackupURL applies only while"}},
		"a URL in place of a name":     {", fromBackup: b", ", fromBackupURL: 's3://b/c'", "", []string{"spec.fromBackupURL applies only while"}},
		"a URL removed":                {", fromBackupURL: 's3://b/c'", "", complete, nil},
		"credentials set later":        {", fromBackup: b", ", fromBackup: b, restore: {secret: s}", "", nil},
		"credentials corrected":        {", fromBackup: b, restore: {secret: s}", ", fromBackup: b, restore: {secret: t}", failed, nil},
		"credentials removed":          {", fromBackup: b, restore: {secret: s}", ", fromBackup: b", failed, nil},
		"too late":                     {", fromBackup: b, restore: {secret: s}", ", fromBackup: b, restore: {secret: t}", complete, []string{"spec.restore cannot be set or changed any more"}},
		"set too late":                 {", fromBackup: b", ", fromBackup: b, restore: {secret: t}", complete, []string{"spec.restore cannot be set or changed any more"}},
		"something else meanwhile":     {", fromBackup: b, restore: {secret: s}", ", fromBackup: b, restore: {secret: s}, replicas: 3", complete, nil},
		"all of it removed":            {", fromBackup: b, restore: {secret: s}", "", complete, nil},
		"the name removed without it":  {", fromBackup: b, restore: {secret: s}", ", restore: {secret: s}", complete, []string{"remove spec.restore"}},
		"a cluster that never had one": {"", ", replicas: 3", "", nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, server.update(t, cluster("a", "secret: s"+test.before)+test.status, cluster("a", "secret: s"+test.after)+test.status), test.told...)
		})
	}
}

// TestClusterRestoreSettings: a restore that stops with SettingsMismatch needs settings that the layout of the data depends on. A user may
// write them until there is data.
func TestClusterRestoreSettings(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLCluster")
	const failed, complete, used = "status: {restore: {phase: Failed}}\n", "status: {restore: {phase: Completed}}\n", "status: {restore: {phase: Failed}, primary: a-0}\n"
	layout := []string{"spec.config must not change lower-case-table-names and innodb-page-size", "set them back"}
	values := []string{"spec.config must not set innodb-page-size other than 4k", "correct it"}
	for story, test := range map[string]struct {
		before, after, status string
		told                  []string
	}{
		"what the message says":                   {", fromBackup: b", ", fromBackup: b, config: {innodb_page_size: '8192'}", failed, nil},
		"in addition to other settings":           {", fromBackup: b, config: {max_connections: '9'}", ", fromBackup: b, config: {max_connections: '9', lower_case_table_names: '1'}", failed, nil},
		"before the operator has looked":          {", fromBackupURL: 's3://b/c'", ", fromBackupURL: 's3://b/c', config: {lower-case-table-names: '1'}", "", nil},
		"a setting that should not have been set": {", fromBackup: b, config: {innodb_page_size: 8k}", ", fromBackup: b", failed, nil},
		"another value":                           {", fromBackup: b, config: {innodb_page_size: 8k}", ", fromBackup: b, config: {innodb_page_size: 4k}", failed, nil},
		"a value that no mysqld accepts":          {", fromBackup: b, config: {innodb_page_size: 8k}", ", fromBackup: b, config: {innodb_page_size: 5k}", failed, values},
		"a spelling that would not be seen":       {", fromBackup: b, config: {max_connections: '9'}", ", fromBackup: b, config: {plugin_innodb_page_size: 8k}", failed, values},
		"the restore is complete":                 {", fromBackup: b", ", fromBackup: b, config: {innodb_page_size: 8k}", complete, layout},
		"complete, and a setting is removed":      {", fromBackup: b, config: {innodb_page_size: 8k}", ", fromBackup: b", complete, layout},
		"complete, and others change":             {", fromBackup: b, config: {innodb_page_size: 8k}", ", fromBackup: b, config: {innodb_page_size: 8k, max_connections: '9'}", complete, nil},
		"a member has written":                    {", fromBackup: b", ", fromBackup: b, config: {innodb_page_size: 8k}", used, layout},
		"the backup is removed at the same time":  {", fromBackup: b", ", config: {innodb_page_size: 8k}", failed, layout},
		"a cluster that did not begin with it":    {"", ", config: {innodb_page_size: 8k}", "", layout},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, server.update(t, cluster("a", "secret: s"+test.before)+test.status, cluster("a", "secret: s"+test.after)+test.status), test.told...)
		})
	}
}
