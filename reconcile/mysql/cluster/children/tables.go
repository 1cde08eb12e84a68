package children

import (
	"maps"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// LabelEngines, on the StatefulSet, says with which defaults about tables it was created; status.innoDBOnly says the same, also when the
// StatefulSet is gone. The cluster keeps them for its whole life: an application that creates tables with other engines, or without keys,
// must not fail because the operator was upgraded.
const (
	LabelEngines    = Prefix + "engines"
	EnginesInnoDB   = "innodb"
	settingDisabled = "disabled_storage_engines"
	// settingGenerate gives InnoDB's new tables that have no primary key an invisible one (manual, "Generated Invisible Primary Keys";
	// since 8.0.30). The statement in the binary log contains it, so that replicas, whose appliers ignore this setting, get the same
	// column. Channels need no REQUIRE_TABLE_PRIMARY_KEY_CHECK: with it, a replica would give keys to tables that have none on the primary.
	settingGenerate = "sql_generate_invisible_primary_key"
	// settingRequire makes mysqld refuse such tables.
	settingRequire = "sql_require_primary_key"
)

// WithTableDefaults adds the defaults of InnoDB-only clusters to the settings, where the user has not chosen. A user who has tables without
// keys refused must not get generated keys instead.
func WithTableDefaults(cluster v1.MySQLCluster) v1.MySQLCluster {
	chosen := plainSettings(cluster.Spec.Config)
	config := map[string]string{}
	if _, isChosen := chosen[settingDisabled]; !isChosen {
		config["loose_"+settingDisabled] = mysqld.UnsafeEngines
	}
	_, isChosen := chosen[settingGenerate]
	_, isRequired := chosen[settingRequire]
	if !isChosen && !isRequired {
		config["loose_"+settingGenerate] = "ON"
	}
	maps.Copy(config, cluster.Spec.Config)
	cluster.Spec.Config = config
	return cluster
}
