package mysqlcluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// inForce reads settings as mysqld does: of those given twice the last one counts, and loose_ is no part of a name.
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
	got := inForce(renderConfig(aCluster(2, func(c *v1.MySQLCluster) {
		c.Spec.Config = map[string]string{"max-connections": "500", "replica_net_timeout": "60", "sql_mode": ""}
	})))
	for key, want := range map[string]string{"max_connections": "500", "replica_net_timeout": "60", "sql_mode": ""} {
		if value, found := got[key]; !found || value != want {
			t.Errorf("%s is %q (%t), want %q", key, value, found, want)
		}
	}
}

// The schema refuses these in spec.config; if one got through all the same, ours still counts.
func TestConfigKeepsWhatSafetyRestsOn(t *testing.T) {
	t.Parallel()
	own := inForce(renderConfig(aCluster(2)))
	spoilt := map[string]string{}
	for _, setting := range ownSettings(aCluster(2)) {
		spoilt[strings.ReplaceAll(setting.key, "_", "-")] = "spoilt"
		spoilt[strings.TrimPrefix(setting.key, "loose_")] = "spoilt"
	}
	got := inForce(renderConfig(aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Config = spoilt })))
	for key, want := range own {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	for key, want := range map[string]string{
		"super_read_only": "ON", "read_only": "ON", "skip_replica_start": "ON", "gtid_mode": "ON", "enforce_gtid_consistency": "ON", "relay_log_recovery": "OFF",
		"rpl_semi_sync_source_enabled": "OFF", "rpl_semi_sync_replica_enabled": "OFF", "rpl_semi_sync_source_wait_point": "AFTER_SYNC",
		"rpl_semi_sync_source_timeout": semiSyncTimeout, "rpl_semi_sync_source_wait_no_replica": "ON", "persisted_globals_load": "OFF", "secure_file_priv": "NULL",
		"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1",
	} {
		if own[key] != want {
			t.Errorf("%s is %q, want %q", key, own[key], want)
		}
	}
}

func TestConfigIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	cluster := aCluster(2, func(c *v1.MySQLCluster) {
		c.Spec.Config = map[string]string{"max-connections": "1", "max_connections": "2", "b": "1", "a": "2", "c": "3"}
	})
	first := renderConfig(cluster)
	for range 50 {
		if again := renderConfig(cluster); again != first {
			t.Fatalf("members would restart for nothing:\n%s\n%s", first, again)
		}
	}
}

func TestBufferPoolFollowsTheMemoryLimit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ limit, chosen, want string }{
		"no limit: MySQL's own default":         {"", "", ""},
		"half of it":                            {"4Gi", "", "2147483648"},
		"never less than MySQL's own default":   {"256Mi", "", ""},
		"the user's choice":                     {"4Gi", "1G", "1G"},
		"a limit that is no multiple of a page": {"1000000001", "", "500000000"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := inForce(renderConfig(aCluster(2, func(c *v1.MySQLCluster) {
				if test.limit != "" {
					c.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(test.limit)}
				}
				if test.chosen != "" {
					c.Spec.Config = map[string]string{"innodb-buffer-pool-size": test.chosen}
				}
			})))
			if got["innodb_buffer_pool_size"] != test.want {
				t.Errorf("got %q, want %q", got["innodb_buffer_pool_size"], test.want)
			}
		})
	}
}
