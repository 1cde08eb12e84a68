package children

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// inForce reads settings as mysqld does: if one is given twice, the last one counts, and loose_ is no part of a name.
func inForce(text string) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(line, " ="); found {
			settings[strings.TrimPrefix(strings.ReplaceAll(key, "-", "_"), "loose_")] = strings.TrimSpace(value)
		}
	}
	return settings
}

func TestConfigLetsUsersChooseWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	got := inForce(RenderConfig(aCluster(2, func(c *v1.MySQLCluster) {
		c.Spec.Config = map[string]string{"max-connections": "500", "replica_net_timeout": "60", "sql_mode": ""}
	})))
	for key, want := range map[string]string{"max_connections": "500", "replica_net_timeout": "60", "sql_mode": ""} {
		if value, found := got[key]; !found || value != want {
			t.Errorf("%s is %q (%t), want %q", key, value, found, want)
		}
	}
}

func TestConfigRequiresTLSWhereAsked(t *testing.T) {
	t.Parallel()
	asked := aCluster(2, func(c *v1.MySQLCluster) {
		c.Spec.TLS.Required = true
		c.Spec.Config = map[string]string{"require_secure_transport": "OFF"} // from an object that the schema did not check
	})
	if got := inForce(RenderConfig(asked))["require_secure_transport"]; got != "ON" {
		t.Errorf("require_secure_transport is %q, want ON", got)
	}
	if got, set := inForce(RenderConfig(aCluster(2)))["require_secure_transport"]; set {
		t.Errorf("require_secure_transport is %q although the spec does not ask for it", got)
	}
}

func TestReplicasFlushWhatTheyReceiveWhereAsked(t *testing.T) {
	t.Parallel()
	asked := aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Durability.Survives = v1.SurvivesPower })
	if got := inForce(RenderConfig(asked))["sync_relay_log"]; got != "1" {
		t.Errorf("sync_relay_log is %q, want 1", got)
	}
	if got, set := inForce(RenderConfig(aCluster(2)))["sync_relay_log"]; set {
		t.Errorf("sync_relay_log is %q although the spec does not ask for it", got)
	}
}

// The schema refuses these in spec.config. If one passes the schema nevertheless, the operator's setting still counts.
func TestConfigKeepsWhatSafetyRestsOn(t *testing.T) {
	t.Parallel()
	own := inForce(RenderConfig(aCluster(2)))
	spoilt := map[string]string{}
	for _, setting := range ownSettings(aCluster(2)) {
		spoilt[strings.ReplaceAll(setting.key, "_", "-")] = "spoilt"
		spoilt[strings.TrimPrefix(setting.key, "loose_")] = "spoilt"
	}
	got := inForce(RenderConfig(aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Config = spoilt })))
	for key, want := range own {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	for key, want := range map[string]string{
		"super_read_only": "ON", "read_only": "ON", "skip_replica_start": "ON", "gtid_mode": "ON", "enforce_gtid_consistency": "ON", "relay_log_recovery": "OFF",
		"replicate_same_server_id":     "ON",
		"rpl_semi_sync_source_enabled": "OFF", "rpl_semi_sync_replica_enabled": "OFF", "rpl_semi_sync_source_wait_point": "AFTER_SYNC",
		"rpl_semi_sync_source_timeout": "4294967295", "rpl_semi_sync_source_wait_no_replica": "ON", "persisted_globals_load": "OFF", "secure_file_priv": "NULL",
		"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1", "binlog_error_action": "ABORT_SERVER",
		"replica_parallel_type": "LOGICAL_CLOCK", "replica_preserve_commit_order": "ON",
	} {
		if own[key] != want {
			t.Errorf("%s is %q, want %q", key, own[key], want)
		}
	}
}

// refusedSettings returns the definition's rules about names in spec.config, as expressions of the names that they refuse.
func refusedSettings(t *testing.T) []*regexp.Regexp {
	t.Helper()
	document, err := schema.Definition(schema.Kinds()[0])
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(document, &definition); err != nil {
		t.Fatal(err)
	}
	settings := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["config"]
	var refused []*regexp.Regexp
	for _, rule := range settings.XValidations {
		_, rest, refuses := strings.Cut(rule.Rule, "!name.matches('")
		expression, _, complete := strings.Cut(rest, "'))")
		if refuses && complete {
			refused = append(refused, regexp.MustCompile(strings.ReplaceAll(expression, "' + '", "")))
		}
	}
	if len(refused) < 3 {
		t.Fatalf("the definition refuses nothing that this test understands: %v", refused)
	}
	return refused
}

// The schema refuses what the operator sets, for all members or for each of them: the operator never drops a user's choice silently.
func TestSettingsOfTheOperatorAreRefused(t *testing.T) {
	t.Parallel()
	refused := refusedSettings(t)
	isRefused := func(name string) bool {
		return slices.ContainsFunc(refused, func(rule *regexp.Regexp) bool { return rule.MatchString(name) })
	}
	ours := memberSettings(t)
	for _, setting := range ownSettings(aCluster(2)) {
		ours = append(ours, setting.key)
	}
	for _, name := range ours {
		for _, spelling := range []string{name, strings.ReplaceAll(name, "_", "-"), "loose_" + name} {
			if !isRefused(spelling) {
				t.Errorf("%s is the operator's, and accepted in spec.config", spelling)
			}
		}
	}
	for name := range defaultSettings() {
		if isRefused(name) {
			t.Errorf("%s has a default that users may change, and is refused in spec.config", name)
		}
	}
}

// memberSettings returns the names of the settings that a member's init container adds to those that all share.
func memberSettings(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	layout := agent.Layout{Volume: folder, Run: folder, Temp: folder, TLS: folder, Accounts: folder, Root: folder}
	for _, name := range []string{agent.PasswordKey, mysqld.AgentUser, mysqld.ReplicationUsers, mysqld.CloneUser} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := agent.Prepare(layout, agent.Identity{Pod: "db-0", Host: "db-0.db-pods.shop.svc", Settings: "[mysqld]\n"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range []string{agent.ServerConfigPath, agent.InitConfigPath} {
		text, err := os.ReadFile(filepath.Join(folder, filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, slices.Collect(maps.Keys(inForce(string(text))))...)
	}
	if len(names) < 10 {
		t.Fatalf("a member has more settings of its own than %v", names)
	}
	return names
}

func TestConfigIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	cluster := aCluster(2, func(c *v1.MySQLCluster) {
		c.Spec.Config = map[string]string{"max-connections": "1", "max_connections": "2", "b": "1", "a": "2", "c": "3"}
	})
	first := RenderConfig(cluster)
	for range 50 {
		if again := RenderConfig(cluster); again != first {
			t.Fatalf("members would restart for nothing:\n%s\n%s", first, again)
		}
	}
	plugins := func(files ...string) string {
		return RenderConfig(aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Plugins = files }))
	}
	if plugins("audit.so", "thread_pool.so") != plugins("thread_pool.so", "audit.so") {
		t.Error("the same plugins in another order would restart members")
	}
}

// Users may override every default, and every setting that depends on a member's resources, in any spelling.
func TestTheUsersChoiceComesLast(t *testing.T) {
	t.Parallel()
	chosen := map[string]string{"innodb-buffer-pool-size": "1G", "loose_innodb_redo_log_capacity": "200M", "loose-session_track_gtids": "OFF"}
	shared := RenderConfig(aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Config = chosen }))
	got := inForce(sizing.Tune(sizing.Resources{Memory: 4 << 30, CPU: 4000, Volume: 1 << 40}).Config() + shared)
	for name, want := range map[string]string{"innodb_buffer_pool_size": "1G", "innodb_redo_log_capacity": "200M", "session_track_gtids": "OFF", "innodb_buffer_pool_instances": "1"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
