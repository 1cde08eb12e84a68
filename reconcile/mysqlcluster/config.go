package mysqlcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// minBufferPool is MySQL's own default for innodb_buffer_pool_size.
	minBufferPool = 128 << 20
	// semiSyncTimeout, in milliseconds, is the longest that MySQL takes: 49 days. Acknowledgements never end silently; the
	// operator turns them off, having recorded it, when the user's durability policy says so.
	semiSyncTimeout = "4294967295"
)

type setting struct{ key, value string }

// ownSettings are those that the cluster's safety rests on; the schema refuses them in spec.config.
func ownSettings(cluster v1.MySQLCluster) []setting {
	var chosen []setting
	if cluster.Spec.TLS.Required {
		// Connections through the agent's socket count as secure.
		chosen = append(chosen, setting{"require_secure_transport", "ON"})
	}
	return append(chosen, []setting{
		{"port", fmt.Sprint(cluster.Spec.Port)},
		{"bind_address", "*"},
		{"mysqlx", "OFF"},
		{"skip_name_resolve", "ON"},
		// Variables persisted with SET PERSIST would be read after this file and could let a member boot writable.
		{"persisted_globals_load", "OFF"},
		{"secure_file_priv", "NULL"},
		{"auto_generate_certs", "OFF"},
		{"gtid_mode", "ON"},
		{"enforce_gtid_consistency", "ON"},
		{"log_bin", "binlog"},
		// What was acknowledged survives a power failure of the primary's machine.
		{"sync_binlog", "1"},
		{"innodb_flush_log_at_trx_commit", "1"},
		// A primary that cannot write its binary log stops, instead of committing what no replica ever gets.
		{"binlog_error_action", "ABORT_SERVER"},
		{"relay_log", "relay"},
		// Relay logs may hold acknowledged transactions that are nowhere else applied: never throw them away at start.
		{"relay_log_recovery", "OFF"},
		{"read_only", "ON"},
		{"super_read_only", "ON"},
		{"skip_replica_start", "ON"},
		{"plugin_load_add", "semisync_source.so"},
		{"plugin_load_add", "semisync_replica.so"},
		{"plugin_load_add", "mysql_clone.so"},
		{"loose_rpl_semi_sync_source_enabled", "OFF"},
		{"loose_rpl_semi_sync_source_wait_point", "AFTER_SYNC"},
		{"loose_rpl_semi_sync_source_wait_no_replica", "ON"},
		{"loose_rpl_semi_sync_source_timeout", semiSyncTimeout},
		{"loose_rpl_semi_sync_replica_enabled", "OFF"},
	}...)
}

// defaultSettings are those that a user may choose otherwise.
func defaultSettings(cluster v1.MySQLCluster) map[string]string {
	defaults := map[string]string{"replica_net_timeout": "10"}
	if memory := cluster.Spec.Resources.Limits.Memory(); memory != nil && memory.Value()/2 > minBufferPool {
		defaults["innodb_buffer_pool_size"] = fmt.Sprint(memory.Value() / 2)
	}
	return defaults
}

// renderConfig is the my.cnf that all members share.
func renderConfig(cluster v1.MySQLCluster) string {
	chosen := defaultSettings(cluster)
	// In order, since an object of before the schema refused it may give a setting in both spellings: what wins must be the same every
	// time.
	for _, key := range slices.Sorted(maps.Keys(cluster.Spec.Config)) {
		chosen[strings.ReplaceAll(key, "-", "_")] = cluster.Spec.Config[key]
	}
	var text strings.Builder
	text.WriteString("# Made by mysql-operator from the MySQLCluster; change spec.config instead.\n[mysqld]\n")
	for _, key := range slices.Sorted(maps.Keys(chosen)) {
		fmt.Fprintf(&text, "%s = %s\n", key, chosen[key])
	}
	for _, own := range ownSettings(cluster) {
		fmt.Fprintf(&text, "%s = %s\n", own.key, own.value)
	}
	return text.String()
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// configKey is the ConfigMap's key for the settings that all members share.
const configKey = "my.cnf"

// configMap is for people to read: members take their settings from their Pod.
func configMap(n names, cluster v1.MySQLCluster) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(n.config(), n.namespace).WithLabels(n.labels()).
		WithData(map[string]string{configKey: renderConfig(cluster)})
}

// trustMap is for clients: the CAs to trust, and no key.
func trustMap(n names, bundle []byte) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(n.trust(), n.namespace).WithLabels(n.labels()).
		WithData(map[string]string{keyAuthorities: string(bundle)})
}

// quantityOr returns a quantity or, where the user gave none, another.
func quantityOr(quantity resource.Quantity, otherwise string) resource.Quantity {
	if quantity.IsZero() {
		return resource.MustParse(otherwise)
	}
	return quantity
}
