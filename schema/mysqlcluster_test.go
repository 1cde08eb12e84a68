package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// seedCluster is the document that the project began with, letter for letter. The API server must always accept it.
const seedCluster = `
apiVersion: cr.mysqloperator.grtl.github.com/v1
kind: MySQLCluster
metadata:
  name: "my-cluster"
spec:
  secret: "my-secret"
  fromBackup: "my-backup-2017-12-14-01-22"
  port: 3306
  replicas: 2
  storage: "1Gi"
  image: "mysql:latest"
`

// cluster is a document with the name and the spec's lines in flow style: cluster("a", "secret: s, port: 1").
func cluster(name, spec string) string {
	return fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLCluster\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}

func TestSeedClusterApplies(t *testing.T) {
	t.Parallel()
	stored, err := newAPIServer(t, "MySQLCluster").create(seedCluster)
	if err != nil {
		t.Fatalf("the seed's manifest is refused: %v", err)
	}
	typed := mysqlv1.MySQLCluster{}
	if err := DecodeStrict(stored, &typed); err != nil {
		t.Fatal(err)
	}
	if typed.Spec.FromBackup != "my-backup-2017-12-14-01-22" || typed.Spec.Secret != "my-secret" || *typed.Spec.Replicas != 2 {
		t.Errorf("read as %+v", typed.Spec)
	}
}

func TestClusterDefaults(t *testing.T) {
	t.Parallel()
	stored, err := newAPIServer(t, "MySQLCluster").create(cluster("a", "secret: s"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"secret": "s", "port": int64(3306), "replicas": int64(2), "storage": "1Gi", "image": "mysql:latest", "root": "Managed",
		"durability": map[string]any{"gracePeriodSeconds": int64(10), "survives": "Process"},
		"failover":   map[string]any{"whenPrimaryUnreachable": "Replace", "whenPrimaryCrashes": "Replace", "notReadySeconds": int64(10), "unreachableSeconds": int64(2)},
	}
	if diff := cmp.Diff(want, stored.Object["spec"]); diff != "" {
		t.Errorf("defaulted spec (-want +got):\n%s", diff)
	}
}

// TestClusterDocuments lists what is refused when a cluster is created, and with which message. No message means that it is accepted.
func TestClusterDocuments(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLCluster")
	for story, test := range map[string]struct {
		document string
		told     []string
	}{
		"no spec":                    {"apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLCluster\nmetadata: {name: a}\n", []string{"spec: Required value"}},
		"no secret":                  {cluster("a", "replicas: 1"), []string{"spec.secret: Required value"}},
		"empty secret":               {cluster("a", "secret: ''"), []string{"spec.secret"}},
		"secret of another form":     {cluster("a", "secret: My_Secret"), []string{"spec.secret must be the name of a Secret"}},
		"secret elsewhere":           {cluster("a", "secret: other/s"), []string{"in the same namespace"}},
		"a misspelt field":           {cluster("a", "secret: s, replica: 3"), []string{"unknown field spec.replica"}},
		"one member":                 {cluster("a", "secret: s, replicas: 1"), nil},
		"nine members":               {cluster("a", "secret: s, replicas: 9"), nil},
		"no members":                 {cluster("a", "secret: s, replicas: 0"), []string{"spec.replicas must be at least 1", "its volumes stay"}},
		"minus one member":           {cluster("a", "secret: s, replicas: -1"), []string{"spec.replicas must be at least 1"}},
		"a thousand members":         {cluster("a", "secret: s, replicas: 1000"), []string{"spec.replicas must be at most 9", "several MySQLClusters"}},
		"members as text":            {cluster("a", "secret: s, replicas: 'two'"), []string{"spec.replicas", "integer"}},
		"another port":               {cluster("a", "secret: s, port: 3307"), nil},
		"port 0":                     {cluster("a", "secret: s, port: 0"), []string{"spec.port", "greater than or equal to 1"}},
		"port 65536":                 {cluster("a", "secret: s, port: 65536"), []string{"spec.port", "less than or equal to 65535"}},
		"the X protocol's port":      {cluster("a", "secret: s, port: 33060"), []string{"spec.port must not be 33060"}},
		"the administration port":    {cluster("a", "secret: s, port: 33062"), []string{"33062"}},
		"the agent's port":           {cluster("a", "secret: s, port: 9443"), []string{"9443"}},
		"storage as a plain number":  {cluster("a", "secret: s, storage: 1073741824"), nil},
		"storage with a fraction":    {cluster("a", "secret: s, storage: 1.5Gi"), nil},
		"the least storage":          {cluster("a", "secret: s, storage: 256Mi"), nil},
		"storage 0":                  {cluster("a", "secret: s, storage: 0"), []string{"spec.storage must be at least 256Mi"}},
		"storage of minus 1Gi":       {cluster("a", "secret: s, storage: -1Gi"), []string{"spec.storage must be at least 256Mi"}},
		"storage too small":          {cluster("a", "secret: s, storage: 255Mi"), []string{"spec.storage must be at least 256Mi"}},
		"storage that is no size":    {cluster("a", "secret: s, storage: plenty"), []string{"spec.storage must be a quantity such as"}},
		"storage in gigabytes":       {cluster("a", "secret: s, storage: 1GB"), []string{"spec.storage must be a quantity such as"}},
		"empty storage":              {cluster("a", "secret: s, storage: ''"), []string{"spec.storage must be a quantity such as"}},
		"image from a registry":      {cluster("a", "secret: s, image: 'registry.example.com:5000/team/mysql:9.7.4'"), nil},
		"image by digest":            {cluster("a", "secret: s, image: 'mysql@sha256:"+strings.Repeat("a1", 32)+"'"), nil},
		"empty image":                {cluster("a", "secret: s, image: ''"), []string{"spec.image"}},
		"image with a space":         {cluster("a", "secret: s, image: 'mysql: latest'"), []string{"spec.image must be an image reference"}},
		"image in capitals":          {cluster("a", "secret: s, image: 'MySQL'"), []string{"spec.image must be an image reference"}},
		"a storage class":            {cluster("a", "secret: s, storageClassName: fast"), nil},
		"an empty storage class":     {cluster("a", "secret: s, storageClassName: ''"), []string{"spec.storageClassName"}},
		"resources":                  {cluster("a", "secret: s, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}"), nil},
		"request beyond limit":       {cluster("a", "secret: s, resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}"), []string{"spec.resources.requests must not exceed"}},
		"an unknown resource":        {cluster("a", "secret: s, resources: {requests: {disk: 1Gi}}"), []string{"only cpu, memory and ephemeral-storage"}},
		"no memory":                  {cluster("a", "secret: s, resources: {limits: {memory: 0}}"), []string{"quantities greater than 0"}},
		"the least memory":           {cluster("a", "secret: s, resources: {limits: {memory: 512Mi}}"), nil},
		"a small request":            {cluster("a", "secret: s, resources: {requests: {memory: 64Mi}}"), nil},
		"too little memory":          {cluster("a", "secret: s, resources: {limits: {memory: 511Mi}}"), []string{"spec.resources.limits.memory must be at least 512Mi", "raise the limit"}},
		"memory that is no size":     {cluster("a", "secret: s, resources: {limits: {memory: lots}}"), []string{"quantities greater than 0"}},
		"settings":                   {cluster("a", "secret: s, config: {max_connections: '500', sql-mode: '', binlog_expire_logs_seconds: '60'}"), nil},
		"TLS required":               {cluster("a", "secret: s, tls: {required: true}, config: {max_connections: '5'}"), nil},
		"TLS required by a setting":  {cluster("a", "secret: s, tls: {required: false}, config: {require_secure_transport: 'ON'}"), nil},
		"TLS required and not":       {cluster("a", "secret: s, tls: {required: true}, config: {require-secure-transport: 'OFF'}"), []string{"spec.config must not set require-secure-transport", "remove it from spec.config"}},
		"a network":                  {cluster("a", "secret: s, network: {allowFrom: [{podLabels: {app: shop, app.kubernetes.io/name: web}}, {namespaceLabels: {team: a}, podLabels: {app: ''}}, {cidr: 10.0.0.0/8}], metricsFrom: [{namespaceLabels: {kubernetes.io/metadata.name: monitoring}}]}"), nil},
		"an empty network":           {cluster("a", "secret: s, network: {}"), nil},
		"a peer of no kind":          {cluster("a", "secret: s, network: {allowFrom: [{}]}"), []string{"spec.network.allowFrom must have in each entry either cidr"}},
		"a peer of two kinds":        {cluster("a", "secret: s, network: {metricsFrom: [{cidr: 10.0.0.0/8, podLabels: {a: b}}]}"), []string{"spec.network.metricsFrom must have in each entry either cidr"}},
		"a peer that selects all":    {cluster("a", "secret: s, network: {allowFrom: [{podLabels: {}}]}"), []string{"podLabels", "at least 1"}},
		"no range of addresses":      {cluster("a", "secret: s, network: {allowFrom: [{cidr: 10.0.0.1}]}"), []string{"spec.network.allowFrom.cidr must be a range of addresses"}},
		"no label":                   {cluster("a", "secret: s, network: {allowFrom: [{podLabels: {a b: c}}]}"), []string{"spec.network.allowFrom.podLabels must have names of labels"}},
		"no value of a label":        {cluster("a", "secret: s, network: {allowFrom: [{namespaceLabels: {a: 'b c'}}]}"), []string{"namespaceLabels"}},
		"a setting twice":            {cluster("a", "secret: s, config: {max_connections: '5', max-connections: '6'}"), []string{"spec.config must not have one setting in two spellings", "remove one of the two"}},
		"twice, once loosely":        {cluster("a", "secret: s, config: {max_connections: '5', loose-max-connections: '6'}"), []string{"spec.config must not have one setting in two spellings"}},
		"twice in mixed spellings":   {cluster("a", "secret: s, config: {sort_buffer-size: 1M, sort-buffer_size: 2M}"), []string{"spec.config must not have one setting in two spellings"}},
		"many settings":              {cluster("a", "secret: s, config: {"+manySettings(64)+"}"), nil},
		"too many settings":          {cluster("a", "secret: s, config: {"+manySettings(65)+"}"), []string{"spec.config", "at most 64 items"}},
		"a setting as a number":      {cluster("a", "secret: s, config: {max_connections: 500}"), []string{"spec.config.max_connections", "string"}},
		"a setting with dashes":      {cluster("a", "secret: s, config: {--max-connections: '5'}"), []string{"without leading dashes"}},
		"a section in a setting":     {cluster("a", "secret: s, config: {\"a]\\n[client\": x}"), []string{"spec.config names must be"}},
		"a setting of two lines":     {cluster("a", "secret: s, config: {init_connect: \"a\\nport=1\"}"), []string{"spec.config values must be one line"}},
		"blocking durability":        {cluster("a", "secret: s, durability: {whenReplicasLost: Block}"), nil},
		"durability of another kind": {cluster("a", "secret: s, durability: {whenReplicasLost: Ignore}"), []string{"spec.durability.whenReplicasLost", `"Continue"`, `"Block"`}},
		"no grace":                   {cluster("a", "secret: s, durability: {gracePeriodSeconds: 0}"), []string{"spec.durability.gracePeriodSeconds"}},
		"how fast copies are":        {cluster("a", "secret: s, copies: {bandwidthLimit: 200Mi}"), nil},
		"copies that never end":      {cluster("a", "secret: s, copies: {bandwidthLimit: 1000}"), []string{"spec.copies.bandwidthLimit must be bytes per second from 1Mi"}},
		"plugins":                    {cluster("a", "secret: s, plugins: [thread_pool.so, audit_log.so]"), nil},
		"a component":                {cluster("a", "secret: s, plugins: [component_validate_password.so]"), []string{"spec.plugins must not name components", "INSTALL COMPONENT"}},
		"a plugin elsewhere":         {cluster("a", "secret: s, plugins: [../x.so]"), []string{"spec.plugins must be names of files"}},
		"a plugin with a name":       {cluster("a", "secret: s, plugins: [x=thread_pool.so]"), []string{"spec.plugins must be names of files"}},
		"a plugin of the operator's": {cluster("a", "secret: s, plugins: [mysql_clone.so]"), []string{"spec.plugins must not name the plugins for replication"}},
		"root left alone":            {cluster("a", "secret: s, root: Absent"), nil},
		"another root":               {cluster("a", "secret: s, root: None"), []string{"spec.root", `"Managed"`, `"Absent"`}},
		"forty characters":           {cluster("a"+strings.Repeat("b", 39), "secret: s"), nil},
		"forty-one characters":       {cluster("a"+strings.Repeat("b", 40), "secret: s"), []string{"metadata.name must be at most 40 characters"}},
		"sixty-three characters":     {cluster("a"+strings.Repeat("b", 62), "secret: s"), []string{"metadata.name must be at most 40 characters"}},
		"a name with a dot":          {cluster("a.b", "secret: s"), []string{"metadata.name must be"}},
		"a name that is a number":    {cluster("'1a'", "secret: s"), []string{"begin with a letter"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(test.document)
			wantRefusal(t, err, test.told...)
		})
	}
}

// manySettings returns this many settings, with the longest names that MySQL has.
func manySettings(count int) string {
	settings := make([]string, 0, count)
	for number := range count {
		settings = append(settings, fmt.Sprintf("performance-schema-max-prepared-statements-instances%02d: '1'", number))
	}
	return strings.Join(settings, ", ")
}

// TestClusterSettingsOfTheOperator lists settings that would break the cluster, in the spellings that mysqld accepts.
func TestClusterSettingsOfTheOperator(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLCluster")
	for _, setting := range []string{
		"server-id", "server_id", "loose_server_id", "maximum-server-id", "gtid-mode", "gtid_mode", "enforce-gtid-consistency", "log-bin",
		"log_bin", "skip-log-bin", "disable_log_bin", "datadir", "port", "socket", "read-only", "read_only", "super-read-only", "super_read_only",
		"report-host", "report_host", "plugin-load-add", "plugin_load_add", "plugin-load", "skip-networking", "skip_grant_tables", "init-file",
		"rpl_semi_sync_source_timeout", "replicate-do-db", "clone_autotune_concurrency", "sync_binlog", "loose_sync-relay-log", "ssl_ca", "admin_port", "mysqlx_port", "user",
		"skip-replica-start", "innodb_flush_log_at_trx_commit", "relay-log", "bind-address", "mysqlx", "mysqlx_ssl_ca", "skip-name-resolve",
		"secure_file_priv", "tmpdir", "persisted_globals_load", "auto_generate_certs", "skip_ssl", "help", "daemonize", "initialize-insecure",
		"replica_skip_errors", "slave_exec_mode", "offline_mode",
		// Places of files: mysqld may read at its next start what it writes there.
		"general_log_file", "general-log-file", "slow_query_log_file", "character_sets_dir", "lc_messages_dir", "innodb_doublewrite_dir",
		"innodb_directories", "innodb_redo_log_archive_dirs", "innodb_temp_tablespaces_dir", "innodb_data_file_path", "innodb-data-file-path",
		"innodb_temp_data_file_path", "innodb_buffer_pool_filename", "replica_load_tmpdir", "loose_slave_load_tmpdir", "ssl_crl", "admin_ssl_crlpath",
		"caching_sha2_password_private_key_path", "loose_general_log_file", "maximum-general-log-file", "skip_loose_slow-query_log-file",
		// The safety of the data.
		"binlog_error_action", "binlog-error-action", "loose_binlog_error_action", "innodb_doublewrite", "skip_innodb_doublewrite", "innodb_force_recovery",
		"maximum_innodb_force_recovery", "tc_heuristic_recover", "core_file", "core-file", "skip_core_file", "init_connect", "loose-init-connect",
		"init_replica", "init-slave", "innodb_flush_method",
		// mysqld also accepts the settings of a plugin by another name (seen on 9.7.4: the first turned the doublewrite buffer off).
		"plugin_innodb_doublewrite", "plugin-innodb-doublewrite-dir", "loose_plugin_clone_donor_timeout_after_network_failure",
		"plugin_innodb_flush_log_at_trx_commit", "plugin_rpl_semi_sync_source_enabled", "plugin-mysqlx-port",
		"clone", "skip_clone", "log_isam", "log-tc", "authentication_policy", "transaction_read_only", "innodb-read-only",
		// mysqld removes one such prefix after the other (seen on 9.7.4: the first turns log_replica_updates off, the next networking).
		"skip_disable_log_replica_updates", "enable_loose_skip_networking", "loose_loose-server_id", "loose_skip_log_replica_updates",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(cluster("a", "secret: s, config: {"+setting+": x}"))
			wantRefusal(t, err, "spec.config must not set", "remove it")
		})
	}
	for _, setting := range []string{"innodb_status_file", "skip-innodb-status-file", "innodb_buffer_pool_in_core_file", "ft_stopword_file", "innodb_validate_tablespace_paths",
		"innodb_file_per_table", "innodb_open_files", "innodb_tmpdir", "innodb_doublewrite_pages", "local_infile", "max_connections", "innodb_buffer_pool_size", "port_open_timeout", "log_bin_trust_function_creators", "loose_group_replication_x", "skip_show_database", "user_stat", "ssl_session_cache_mode", "require_secure_transport"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(cluster("a", "secret: s, config: {"+setting+": x}"))
			wantRefusal(t, err)
		})
	}
}

// TestClusterSettingsByValue lists settings of which only some values are safe.
func TestClusterSettingsByValue(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLCluster")
	refused := []string{"spec.config must not set binlog-error-action other than ABORT_SERVER", "remove it"}
	needed := []string{"spec.config must not set performance-schema and innodb-log-checksums other than ON", "remove it"}
	layout := []string{"spec.config must not set innodb-page-size other than 4k", "correct it"}
	for setting, told := range map[string][]string{
		"binlog_error_action: ABORT_SERVER":                               nil,
		"loose-binlog-error-action: abort_server":                         nil,
		"binlog_error_action: IGNORE_ERROR":                               refused,
		"binlog_error_action: '0'":                                        refused,
		"innodb_doublewrite: 'ON'":                                        nil,
		"innodb-doublewrite: DETECT_AND_RECOVER":                          nil,
		"innodb_doublewrite: 'OFF'":                                       refused,
		"innodb_doublewrite: DETECT_ONLY":                                 refused,
		"skip_innodb_doublewrite: 'ON'":                                   refused,
		"enable_innodb_doublewrite: 'OFF'":                                refused,
		"innodb_force_recovery: '0'":                                      nil,
		"innodb_force_recovery: '1'":                                      refused,
		"innodb_flush_method: O_DIRECT":                                   nil,
		"innodb_flush_method: nosync":                                     refused,
		"innodb_flush_method: '3'":                                        refused,
		"init_connect: ''":                                                nil,
		"tls_version: TLSv1.3":                                            nil,
		"tls_version: 'TLSv1.2,TLSv1.3'":                                  nil,
		"tls_version: ''":                                                 refused,
		"tls_version: '\"\"'":                                             refused,
		"tls_version: '# x'":                                              refused,
		"tls_ciphersuites: TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256": nil,
		"tls_ciphersuites: ''":                                            refused,
		"ssl_cipher: ECDHE-RSA-AES256-GCM-SHA384":                         nil,
		"ssl-cipher: '# x'":                                               refused,
		"admin-tls-version: ''":                                           refused,
		"init_connect: SET autocommit=0":                                  refused,
		"core_file: 'OFF'":                                                refused,
		// A restored backup may need it: docs/backups.md, "Restore".
		"innodb_data_file_path: 'ibdata1:12M:autoextend'":                   nil,
		"innodb-data-file-path: 'ibdata1:64M;ibdata2:1G:autoextend:max:8G'": nil,
		"innodb_data_file_path: '/etc/mysql/ibdata1:12M:autoextend'":        refused,
		"innodb_data_file_path: 'ibdata1:12M;../ibdata2:12M:autoextend'":    refused,
		"innodb_data_file_path: 'auto.cnf:12M:autoextend'":                  refused,
		"innodb_data_file_path: 'ibdata1:3Graw'":                            refused,
		"maximum_innodb_data_file_path: 'ibdata1:12M:autoextend'":           refused,
		// The agent reads these, or new members and backups depend on them.
		"performance_schema: 'ON'":                                     nil,
		"performance-schema: 'OFF'":                                    needed,
		"skip_performance_schema: '1'":                                 needed,
		"performance_schema_digests_size: '100'":                       nil,
		"innodb_dedicated_server: 'OFF'":                               nil,
		"innodb_dedicated_server: 'ON'":                                needed,
		"default_storage_engine: InnoDB":                               nil,
		"loose_default-storage-engine: MyISAM":                         needed,
		"binlog_checksum: NONE":                                        needed,
		"binlog_checksum: CRC32":                                       nil,
		"innodb_page_size: 8k":                                         nil,
		"innodb_page_size: 5k":                                         layout,
		"lower_case_table_names: '1'":                                  nil,
		"lower_case_table_names: '2'":                                  layout,
		"log_error_services: 'log_filter_internal; log_sink_internal'": nil,
		"log_error_services: 'log_filter_internal; log_sink_json'":     needed,
		"default_table_encryption: 'ON'":                               needed,
		"innodb-redo-log-encrypt: 'ON'":                                needed,
		"binlog_encryption: 'OFF'":                                     nil,
		"ft_boolean_syntax: 'a # b'":                                   {"spec.config values must not have a '#'"},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(cluster("a", "secret: s, config: {"+setting+"}"))
			wantRefusal(t, err, told...)
		})
	}
}

// TestClusterKeepsSettingsOfEarlierReleases: a cluster may have a setting that is refused only since a later release. Then its
// other fields and its status can change, and the setting can be removed.
func TestClusterKeepsSettingsOfEarlierReleases(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLCluster")
	for after, told := range map[string][]string{
		"secret: s, replicas: 3, config: {general_log_file: x, max_connections: '5'}": nil,
		"secret: s, config: {max_connections: '5'}":                                   nil,
		"secret: s, config: {general_log_file: x, max_connections: '6'}":              {"spec.config must not set names or places of files"},
	} {
		wantRefusal(t, updateOfStored(t, server, "secret: s, config: {general_log_file: x, max_connections: '5'}", after), told...)
	}
	for after, told := range map[string][]string{
		"secret: s, replicas: 3, plugins: [component_x.so]":    nil,
		"secret: s, plugins: [thread_pool.so]":                 nil,
		"secret: s, plugins: [component_x.so, component_y.so]": {"spec.plugins must not name components"},
	} {
		wantRefusal(t, updateOfStored(t, server, "secret: s, plugins: [component_x.so]", after), told...)
	}
}

// updateOfStored updates a cluster that was stored before the API server refused its settings.
func updateOfStored(t *testing.T, server apiServer, before, after string) error {
	t.Helper()
	old, err := server.admit(cluster("a", before))
	if err != nil {
		t.Fatal(err)
	}
	object, err := server.admit(cluster("a", after))
	if err != nil {
		t.Fatal(err)
	}
	old.SetResourceVersion("1")
	object.SetResourceVersion("1")
	return server.validateUpdate(object, old).ToAggregate()
}

// TestClusterKeepsTheLayoutOfEarlierReleases: a setting that the layout of the data depends on cannot change, even if it would be refused
// today. Other settings can change.
func TestClusterKeepsTheLayoutOfEarlierReleases(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MySQLCluster")
	kept := []string{"spec.config must not change lower-case-table-names and innodb-page-size"}
	for after, told := range map[string][]string{
		"secret: s, config: {lower_case_table_names: '2', max_connections: '6'}": nil,
		"secret: s, config: {lower_case_table_names: '0', max_connections: '6'}": kept,
		"secret: s, config: {max_connections: '6'}":                              kept,
	} {
		wantRefusal(t, updateOfStored(t, server, "secret: s, config: {lower_case_table_names: '2'}", after), told...)
	}
}

// TestClusterChanges lists what may and may not change in an existing cluster.
func TestClusterChanges(t *testing.T) {
	t.Parallel()
	layout := []string{"spec.config must not change lower-case-table-names and innodb-page-size", "set them back"}
	server := newAPIServer(t, "MySQLCluster")
	for story, test := range map[string]struct {
		before, after string
		told          []string
	}{
		"nothing changes":             {"secret: s", "secret: s", nil},
		"another secret":              {"secret: s", "secret: t", nil},
		"scaling out":                 {"secret: s", "secret: s, replicas: 5", nil},
		"scaling in":                  {"secret: s, replicas: 5", "secret: s, replicas: 1", nil},
		"scaling to nothing":          {"secret: s", "secret: s, replicas: 0", []string{"spec.replicas must be at least 1"}},
		"storage grows":               {"secret: s, storage: 1Gi", "secret: s, storage: 2Gi", nil},
		"storage in another spelling": {"secret: s, storage: 1Gi", "secret: s, storage: 1024Mi", nil},
		"storage from text to number": {"secret: s, storage: 1Gi", "secret: s, storage: 1073741824", nil},
		"storage shrinks":             {"secret: s, storage: 2Gi", "secret: s, storage: 1Gi", []string{"spec.storage may not shrink"}},
		"storage back to the default": {"secret: s, storage: 2Gi", "secret: s", []string{"spec.storage may not shrink"}},
		"port changes":                {"secret: s", "secret: s, port: 3307", []string{"spec.port cannot change"}},
		"default port spelt out":      {"secret: s", "secret: s, port: 3306", nil},
		"backup removed":              {"secret: s, fromBackup: b", "secret: s", nil},
		"backup kept":                 {"secret: s, fromBackup: b", "secret: s, fromBackup: b, replicas: 3", nil},
		"backup set later":            {"secret: s", "secret: s, fromBackup: b", []string{"spec.fromBackup applies only while"}},
		"another backup":              {"secret: s, fromBackup: b", "secret: s, fromBackup: c", []string{"spec.fromBackup applies only while"}},
		"storage class set later":     {"secret: s", "secret: s, storageClassName: fast", []string{"spec.storageClassName cannot change"}},
		"storage class removed":       {"secret: s, storageClassName: fast", "secret: s", []string{"spec.storageClassName cannot change"}},
		"another storage class":       {"secret: s, storageClassName: fast", "secret: s, storageClassName: slow", []string{"spec.storageClassName cannot change"}},
		"another image":               {"secret: s", "secret: s, image: 'mysql:9.7.4'", nil},
		"pausing":                     {"secret: s", "secret: s, paused: true", nil},
		"settings of the data kept":   {"secret: s, config: {innodb_page_size: 8k}", "secret: s, config: {innodb_page_size: 8k, max_connections: '9'}", nil},
		"another page size":           {"secret: s, config: {innodb_page_size: 8k}", "secret: s, config: {innodb_page_size: 16k}", layout},
		"page size set later":         {"secret: s", "secret: s, config: {innodb-page-size: 8k}", layout},
		"names of tables set later":   {"secret: s, config: {max_connections: '9'}", "secret: s, config: {loose_lower_case_table_names: '1'}", layout},
		"names of tables removed":     {"secret: s, config: {lower_case_table_names: '1'}", "secret: s", layout},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, server.update(t, cluster("a", test.before), cluster("a", test.after)), test.told...)
		})
	}
}

// TestClusterSettingsFitIntoAPod: all settings are one variable of a Pod's environment. If it is longer than Linux allows (MAX_ARG_STRLEN,
// 128 KiB), no program starts, and every member would be in a crash loop.
func TestClusterSettingsFitIntoAPod(t *testing.T) {
	t.Parallel()
	const longestVariable, linesOfTheOperator = 128 << 10, 8 << 10
	server := newAPIServer(t, "MySQLCluster")
	settings := func(nameSize int, value string) string {
		all := make([]string, 0, 64)
		for number := range 64 {
			all = append(all, fmt.Sprintf("%s%02d: '%s'", strings.Repeat("a", nameSize-2), number, value))
		}
		return strings.Join(all, ", ")
	}
	for story, test := range map[string]struct {
		settings string
		told     []string
	}{
		"as many and as long as may be":  {settings(128, strings.Repeat("x", 1024)), nil},
		"in letters of four bytes":       {settings(128, strings.Repeat("𝒳", 256)), nil},
		"names that are longer":          {settings(129, "x"), []string{"spec.config names must be at most 128 characters", "correct the name"}},
		"a name of a thousand letters":   {strings.Repeat("a", 1_000) + ": x", []string{"spec.config names must be at most 128 characters"}},
		"values that are longer":         {settings(128, strings.Repeat("x", 1025)), []string{"spec.config"}},
		"longer, but only as bytes":      {settings(128, strings.Repeat("𝒳", 257)), []string{"spec.config values must be at most 1024 bytes", "shorten"}},
		"one of them longer, as bytes":   {"a: x, b: '" + strings.Repeat("ä", 513) + "'", []string{"spec.config values must be at most 1024 bytes"}},
		"a letter of two bytes, in 1024": {"a: '" + strings.Repeat("x", 1022) + "ä'", nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(cluster("a", "secret: s, config: {"+test.settings+"}"))
			wantRefusal(t, err, test.told...)
			// A setting has more characters around it here than in the variable.
			if size := len(test.settings); err == nil && size+linesOfTheOperator > longestVariable {
				t.Errorf("accepted, although it takes %d bytes", size)
			}
		})
	}
}
