package cluster

import (
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// conditionOvercommitted is present while a member could need more memory than it has.
	conditionOvercommitted = "MemoryOvercommitted"
	// reasonConfig is its reason: spec.config asks for it.
	reasonConfig = "ConfigExceedsMemory"
)

// describeMemory sets or removes the condition MemoryOvercommitted.
func describeMemory(status *v1.MySQLClusterStatus, cluster v1.MySQLCluster) {
	message := children.Overcommitted(cluster)
	conditionsOf(status).SetIf(message != "", conditionOvercommitted, reasonConfig, message)
}
