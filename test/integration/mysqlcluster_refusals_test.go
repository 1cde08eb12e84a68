package integration

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manySettings are so many settings, with names as long as MySQL's longest: the rules about them must be within what the API server
// lets rules cost.
func manySettings(count int) string {
	settings := make([]string, 0, count)
	for number := range count {
		settings = append(settings, fmt.Sprintf("performance-schema-max-prepared-statements-instances%02d: '1'", number))
	}
	return strings.Join(settings, ", ")
}

// TestMySQLClusterRefusals lists what the API server refuses when a cluster is made or changed, and what it tells the user. No words
// mean that it is accepted. Nothing is made: all of it is asked as a dry run, beside a cluster that is there.
func TestMySQLClusterRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	longest := strings.Repeat("a", 40)
	s.apply(t, "db", "secret: root, storage: 2Gi, storageClassName: standard, fromBackup: monday")
	s.apply(t, "plain", "secret: root")

	for story, test := range map[string]struct {
		name, spec string
		told       []string
	}{
		"no members":                       {"new", "secret: root, replicas: 0", []string{"spec.replicas must be at least 1", "delete the MySQLCluster"}},
		"minus one member":                 {"new", "secret: root, replicas: -1", []string{"spec.replicas must be at least 1"}},
		"a thousand members":               {"new", "secret: root, replicas: 1000", []string{"spec.replicas must be at most 9", "split the data"}},
		"half a member":                    {"new", "secret: root, replicas: 1.5", []string{"spec.replicas"}},
		"no storage":                       {"new", "secret: root, storage: 0", []string{"spec.storage must be at least 256Mi"}},
		"negative storage":                 {"new", "secret: root, storage: -1Gi", []string{"spec.storage must be at least 256Mi"}},
		"storage that is no size":          {"new", "secret: root, storage: plenty", []string{"spec.storage must be a quantity such as"}},
		"storage of another unit":          {"new", "secret: root, storage: 1GB", []string{"spec.storage must be a quantity such as"}},
		"storage that shrinks":             {"db", "secret: root, storage: 1Gi, storageClassName: standard, fromBackup: monday", []string{"spec.storage may not shrink", "create a smaller MySQLCluster"}},
		"storage that grows":               {"db", "secret: root, storage: 3Gi, storageClassName: standard, fromBackup: monday", nil},
		"the same storage, other unit":     {"db", "secret: root, storage: 2048Mi, storageClassName: standard, fromBackup: monday", nil},
		"port nought":                      {"new", "secret: root, port: 0", []string{"spec.port", "greater than or equal to 1"}},
		"port beyond the last":             {"new", "secret: root, port: 65536", []string{"spec.port", "less than or equal to 65535"}},
		"the agent's port":                 {"new", "secret: root, port: 9443", []string{"spec.port must not be", "3306 is the usual choice"}},
		"the last port":                    {"new", "secret: root, port: 65535", nil},
		"another port later":               {"plain", "secret: root, port: 3307", []string{"spec.port cannot change after creation"}},
		"a name of 40 characters":          {longest, "secret: root", nil},
		"a name of 41 characters":          {longest + "a", "secret: root", []string{"metadata.name must be at most 40 characters", "choose a shorter or simpler name"}},
		"a name with a dot":                {"my.cluster", "secret: root", []string{"metadata.name must be at most 40 characters of a-z, 0-9 and '-'"}},
		"a name that is a number":          {"1", "secret: root", []string{"begin with a letter"}},
		"a backup set later":               {"plain", "secret: root, fromBackup: monday", []string{"spec.fromBackup applies only while a cluster is created"}},
		"another backup later":             {"db", "secret: root, storage: 2Gi, storageClassName: standard, fromBackup: tuesday", []string{"spec.fromBackup applies only while"}},
		"the backup removed later":         {"db", "secret: root, storage: 2Gi, storageClassName: standard", nil},
		"another class later":              {"db", "secret: root, storage: 2Gi, storageClassName: fast, fromBackup: monday", []string{"spec.storageClassName cannot change after creation"}},
		"a class set later":                {"plain", "secret: root, storageClassName: standard", []string{"spec.storageClassName cannot change after creation"}},
		"a class removed later":            {"db", "secret: root, storage: 2Gi, fromBackup: monday", []string{"spec.storageClassName cannot change after creation"}},
		"the server's number":              {"new", "secret: root, config: {server-id: '7'}", []string{"spec.config must not set server-id", "remove it"}},
		"the number, other spelling":       {"new", "secret: root, config: {server_id: '7'}", []string{"spec.config must not set server-id"}},
		"read-only":                        {"new", "secret: root, config: {super-read-only: 'OFF'}", []string{"spec.config must not set what replication"}},
		"semi-sync":                        {"new", "secret: root, config: {rpl_semi_sync_source_timeout: '10'}", []string{"spec.config must not set what replication"}},
		"semi-sync, made optional":         {"new", "secret: root, config: {loose_rpl_semi_sync_source_timeout: '10'}", []string{"spec.config must not set what replication"}},
		"the port as a setting":            {"new", "secret: root, config: {port: '3307'}", []string{"spec.port sets the port"}},
		"a plugin":                         {"new", "secret: root, config: {plugin-load-add: group_replication.so}", []string{"spec.config must not set where files are, what is loaded at start"}},
		"a value of two lines":             {"new", "secret: root, config: {max_connections: \"5\\n[client]\"}", []string{"spec.config values must be one line each"}},
		"a value with a return":            {"new", "secret: root, config: {max_connections: \"5\\rport=1\"}", []string{"spec.config values must be one line each"}},
		"a name with a section":            {"new", "secret: root, config: {'[client]': '5'}", []string{"spec.config names must be lower-case letters"}},
		"a setting in two spellings":       {"new", "secret: root, config: {max_connections: '5', max-connections: '6'}", []string{"spec.config must not have one setting in two spellings", "remove one of the two"}},
		"X Protocol":                       {"new", "secret: root, config: {mysqlx: 'ON'}", []string{"spec.config must not set", "mysqlx*", "remove it"}},
		"looking up names":                 {"new", "secret: root, config: {skip_name_resolve: 'OFF'}", []string{"spec.config must not set", "skip-name-resolve"}},
		"a setting turned off twice":       {"new", "secret: root, config: {skip_disable_log_replica_updates: ''}", []string{"spec.config must not set what replication"}},
		"as many settings as there may be": {"new", "secret: root, config: {" + manySettings(64) + "}", nil},
		"one setting too many":             {"new", "secret: root, config: {" + manySettings(65) + "}", []string{"spec.config", "at most 64 items"}},
		"a good setting":                   {"new", "secret: root, config: {max_connections: '500'}", nil},
		"an image that is a sentence":      {"new", "secret: root, image: 'the latest one'", []string{"spec.image must be an image reference such as"}},
		"a Secret elsewhere":               {"new", "secret: other/root", []string{"spec.secret must be the name of a Secret in the same namespace"}},
	} {
		dryRun := metav1.ApplyOptions{FieldManager: "user", Force: true, DryRun: []string{metav1.DryRunAll}}
		_, err := s.of("mysqlclusters").Apply(t.Context(), test.name, manifest(t, test.name, test.spec), dryRun)
		switch {
		case err == nil && len(test.told) > 0:
			t.Errorf("%s: accepted, want it refused", story)
		case err != nil && len(test.told) == 0:
			t.Errorf("%s: refused: %v", story, err)
		case err != nil:
			says(t, err.Error(), test.told...)
		}
	}
}
