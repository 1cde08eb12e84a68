package children

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

type setting struct{ key, value string }

// SettingPlugin is the setting that has mysqld load a plugin from its plugin directory.
const SettingPlugin = "plugin_load_add"

// ownSettings are those that the cluster's safety depends on; the schema refuses them in spec.config.
func ownSettings(cluster v1.MySQLCluster) []setting {
	var chosen []setting
	if cluster.Spec.TLS.Required {
		// Connections through the agent's socket count as secure.
		chosen = append(chosen, setting{"require_secure_transport", "ON"})
	}
	if cluster.Spec.Durability.Survives == v1.SurvivesPower {
		chosen = append(chosen, setting{"sync_relay_log", "1"})
	}
	// Sorted: the list is a set, and members must not restart for another order.
	for _, library := range slices.Sorted(slices.Values(cluster.Spec.Plugins)) {
		chosen = append(chosen, setting{SettingPlugin, library})
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
		// An acknowledged commit survives a power failure of the primary's machine.
		{"sync_binlog", "1"},
		{"innodb_flush_log_at_trx_commit", "1"},
		// A primary that cannot write its binary log stops, instead of committing transactions that no replica ever gets.
		{"binlog_error_action", "ABORT_SERVER"},
		{"relay_log", "relay"},
		// Relay logs may hold acknowledged transactions that are applied nowhere else: mysqld must never discard them at start.
		{"relay_log_recovery", "OFF"},
		// A former primary receives transactions again that it made itself and has lost, or cut off its binary log. By default a receiver
		// drops those with its own server_id without an error. GTIDs already keep a transaction from being applied twice.
		{"replicate_same_server_id", "ON"},
		{"read_only", "ON"},
		{"super_read_only", "ON"},
		{"skip_replica_start", "ON"},
		// Replicas apply independent transactions in parallel, and commit in the primary's order: before MySQL 8.0.27 that was not the
		// default. Newer releases always do so, and may not have these settings.
		{"loose_replica_parallel_type", "LOGICAL_CLOCK"},
		{"loose_replica_preserve_commit_order", "ON"},
		{SettingPlugin, "semisync_source.so"},
		{SettingPlugin, "semisync_replica.so"},
		{SettingPlugin, "mysql_clone.so"},
		{"loose_rpl_semi_sync_source_enabled", "OFF"},
		{"loose_rpl_semi_sync_source_wait_point", "AFTER_SYNC"},
		{"loose_rpl_semi_sync_source_wait_no_replica", "ON"},
		{"loose_rpl_semi_sync_source_timeout", mysqld.SemiSyncTimeout},
		{"loose_rpl_semi_sync_replica_enabled", "OFF"},
	}...)
}

// defaultSettings are those that users may override. A member's init container adds the settings that follow from memory, CPU and volume
// (sizing).
func defaultSettings() map[string]string {
	return map[string]string{
		"replica_net_timeout": "10",
		// This avoids a mutex of the C library for each conversion.
		"default_time_zone": "'+00:00'",
		// On the primary, a statement that changes a table gives up after an hour, not after a year, if a report blocks it: all clients
		// that need the table wait behind it. Appliers continue to wait.
		"lock_wait_timeout": "3600",
		// A member that restarts soon has most of its cache again.
		"innodb_buffer_pool_dump_pct": "75",
		"innodb_print_all_deadlocks":  "ON",
		// Replicas apply all transactions in parallel that change different rows. Releases from 8.4 on always do, and lack the setting.
		"binlog_transaction_dependency_tracking": "WRITESET",
		// Clients learn which GTID to wait for at NAME-read (WAIT_FOR_EXECUTED_GTID_SET).
		"session_track_gtids": "OWN_GTID",
		// Semi-synchronous replication takes fewer locks (manual, "Semisynchronous Replication").
		"replication_sender_observe_commit_only":        "ON",
		"replication_optimize_for_static_plugin_config": "ON",
	}
}

// RenderConfig returns the my.cnf that all members share. If a setting is given twice, mysqld uses the last one, with or without loose_.
func RenderConfig(cluster v1.MySQLCluster) string {
	var text strings.Builder
	text.WriteString("# Made by mysql-operator from the MySQLCluster; change spec.config instead.\n[mysqld]\n")
	render := func(prefix string, settings map[string]string) {
		// Sorted: members must not restart for another order.
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			text.WriteString(ConfigLine(prefix+key, settings[key]))
		}
	}
	render("loose_", defaultSettings())
	render("", underscored(cluster.Spec.Config))
	for _, own := range ownSettings(cluster) {
		text.WriteString(ConfigLine(own.key, own.value))
	}
	return text.String()
}

// ConfigLine returns a setting as a line of a my.cnf.
func ConfigLine(name, value string) string { return name + " = " + value + "\n" }

// configKey is the ConfigMap's key for the settings that all members share.
const configKey = "my.cnf"

// ConfigMap is for users to read: members get their settings from their Pod.
func ConfigMap(n Names, cluster v1.MySQLCluster) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(n.ConfigMap(), n.Namespace).WithLabels(n.Labels()).
		WithData(map[string]string{configKey: RenderConfig(cluster)})
}

// TrustMap is for clients: it has the CAs to trust, and no key.
func TrustMap(n Names, bundle []byte) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(n.TrustMap(), n.Namespace).WithLabels(n.Labels()).
		WithData(map[string]string{KeyAuthorities: string(bundle)})
}

// underscored returns settings spelled with underscores. It sorts them, because an object from before the schema refused that may have a
// setting in both spellings: the same one must win every time.
func underscored(config map[string]string) map[string]string {
	spelled := make(map[string]string, len(config))
	for _, key := range slices.Sorted(maps.Keys(config)) {
		spelled[strings.ReplaceAll(key, "-", "_")] = config[key]
	}
	return spelled
}
