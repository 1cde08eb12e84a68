package cluster

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/restore"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// reasonOtherEngines is the reason of the condition NonTransactionalTables, reasonRowsMissing that of IncompleteMembers.
	reasonOtherEngines = "OtherEnginesThanInnoDB"
	reasonRowsMissing  = string(replication.ReasonIncompleteMembers)
)

// describeTables sets the conditions about tables with other engines than InnoDB. As long as a primary has not looked, or does not answer,
// its last report still holds.
func (r passResult) describeTables(status *v1.MySQLClusterStatus) {
	if primary := r.primaryStatus(); primary != nil && primary.OtherEngines != nil {
		message := otherEngines(*primary.OtherEngines)
		conditionsOf(status).SetIf(message != "", v1.ConditionNonTransactionalTables, reasonOtherEngines, message)
	}
	told, isWhole := r.incompleteMembers()
	if isWhole || meta.FindStatusCondition(status.Conditions, v1.ConditionIncompleteMembers) == nil {
		conditionsOf(status).SetIf(told != "", v1.ConditionIncompleteMembers, reasonRowsMissing, told)
	}
}

func otherEngines(tables replication.Tables) string {
	if tables.Empty() {
		return ""
	}
	return fmt.Sprintf("tables of other engines than InnoDB: %s; backups and new replicas contain these tables without their rows, and a crash can damage them. On the primary, run ALTER TABLE … ENGINE=InnoDB", tables)
}

// incompleteMembers names the members that are missing rows of tables; isWhole reports whether all existing members have answered, and
// know.
func (r passResult) incompleteMembers() (told string, isWhole bool) {
	var each []string
	isWhole = true
	for _, member := range r.seen.members {
		switch {
		case member.Status == nil:
			isWhole = isWhole && !member.Pod && member.Ordinal >= children.WantedReplicas(r.cluster)
		case !member.Status.KnowsTablesWithoutRows():
			isWhole = false
		case !member.Status.KnownTablesWithoutRows().Empty():
			each = append(each, fmt.Sprintf("%s is missing rows of %s", member.Name, member.Status.TablesWithoutRows))
		}
	}
	if len(each) == 0 {
		return "", isWhole
	}
	return "members are missing the rows of tables that are not InnoDB, which copies and backups do not contain; such a member becomes the primary only if no other one can. Run ALTER TABLE … ENGINE=InnoDB " +
		"on the primary, then rebuild these members; a dropped table no longer counts: " + strings.Join(each, "; "), isWhole
}

// tableEvents sends an event when one of these conditions begins. Later changes of it cause none: an application may create and drop such
// tables all the time.
func tableEvents(before, after v1.MySQLClusterStatus) []reconcile.Event {
	var events []reconcile.Event
	for _, kind := range []string{v1.ConditionNonTransactionalTables, v1.ConditionIncompleteMembers} {
		was, is := meta.FindStatusCondition(before.Conditions, kind), meta.FindStatusCondition(after.Conditions, kind)
		if is != nil && was == nil {
			events = append(events, reconcile.Event{Type: reconcile.Warning, Reason: is.Reason, Action: "LookAtTables", Note: is.Message})
		}
	}
	return events
}

// isInnoDBOnly reports whether a cluster refuses tables whose rows copies do not contain, and gives tables without a primary key one. The
// operator decides that when it creates the StatefulSet: for a cluster that starts empty. Existing data, of an earlier cluster's volumes or
// a backup, belongs to an application that may create such tables.
func isInnoDBOnly(cluster v1.MySQLCluster, seen observed) bool {
	if cluster.Status.InnoDBOnly {
		return true
	}
	if seen.set != nil {
		return seen.set.Labels[children.LabelEngines] == children.EnginesInnoDB
	}
	return len(cluster.Status.InSync) == 0 && !restore.HasBegun(cluster.Status) && len(seen.volumes) == 0
}
