package cluster

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
	// semiSyncTimeout, in milliseconds, is the longest that MySQL takes: 49 days. Acknowledgements never end silently; the
	// operator turns them off, having recorded it, when the user's durability policy says so.
	semiSyncTimeout = "4294967295"
)

type setting struct{ key, value string }

// loadPlugin has mysqld load a plugin from its plugin directory.
const loadPlugin = "plugin_load_add"

// ownSettings are those that the cluster's safety rests on; the schema refuses them in spec.config.
func ownSettings(cluster v1.MySQLCluster) []setting {
	var chosen []setting
	if cluster.Spec.TLS.Required {
		// Connections through the agent's socket count as secure.
		chosen = append(chosen, setting{"require_secure_transport", "ON"})
	}
	// In order: the list is a set, and members must not restart for another order.
	for _, library := range slices.Sorted(slices.Values(cluster.Spec.Plugins)) {
		chosen = append(chosen, setting{loadPlugin, library})
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
		// Replicas apply at the same time what does not depend on each other, and commit in the primary's order: before MySQL 8.0.27 they would
		// not. Newer releases know no other way, and may not know the settings.
		{"loose_replica_parallel_type", "LOGICAL_CLOCK"},
		{"loose_replica_preserve_commit_order", "ON"},
		{loadPlugin, "semisync_source.so"},
		{loadPlugin, "semisync_replica.so"},
		{loadPlugin, "mysql_clone.so"},
		{"loose_rpl_semi_sync_source_enabled", "OFF"},
		{"loose_rpl_semi_sync_source_wait_point", "AFTER_SYNC"},
		{"loose_rpl_semi_sync_source_wait_no_replica", "ON"},
		{"loose_rpl_semi_sync_source_timeout", semiSyncTimeout},
		{"loose_rpl_semi_sync_replica_enabled", "OFF"},
	}...)
}

// defaultSettings are those that a user may choose otherwise. What follows from memory, CPU and volume a member's init container adds
// (sizing).
func defaultSettings() map[string]string {
	return map[string]string{
		"replica_net_timeout": "10",
		// Without a mutex of the C library for each conversion.
		"default_time_zone": "'+00:00'",
		// On the primary the change of a table gives up after an hour, not after a year, if a report holds it up: all who need the table wait
		// behind it. Appliers wait on.
		"lock_wait_timeout": "3600",
		// A member that starts anew has most of its cache.
		"innodb_buffer_pool_dump_pct": "75",
		"innodb_print_all_deadlocks":  "ON",
		// Clients learn which GTID to wait for at NAME-read (WAIT_FOR_EXECUTED_GTID_SET).
		"session_track_gtids": "OWN_GTID",
		// Semi-synchronous replication takes fewer locks (manual, "Semisynchronous Replication").
		"replication_sender_observe_commit_only":        "ON",
		"replication_optimize_for_static_plugin_config": "ON",
	}
}

// renderConfig is the my.cnf that all members share. Of settings given twice mysqld takes the last, whether it begins with loose_ or not.
func renderConfig(cluster v1.MySQLCluster) string {
	var text strings.Builder
	text.WriteString("# Made by mysql-operator from the MySQLCluster; change spec.config instead.\n[mysqld]\n")
	render := func(prefix string, settings map[string]string) {
		// In order: members must not restart for a different one.
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			text.WriteString(line(prefix+key, settings[key]))
		}
	}
	render("loose_", defaultSettings())
	render("", underscored(cluster.Spec.Config))
	for _, own := range ownSettings(cluster) {
		text.WriteString(line(own.key, own.value))
	}
	return text.String()
}

// line is a setting in a my.cnf.
func line(name, value string) string { return name + " = " + value + "\n" }

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

// underscored are settings spelled with underscores. It goes through them in order, since an object of before the schema refused it may
// give a setting in both spellings: what wins must be the same every time.
func underscored(config map[string]string) map[string]string {
	spelled := make(map[string]string, len(config))
	for _, key := range slices.Sorted(maps.Keys(config)) {
		spelled[strings.ReplaceAll(key, "-", "_")] = config[key]
	}
	return spelled
}
