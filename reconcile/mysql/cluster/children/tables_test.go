package children

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestEnginesThatAClusterRefuses: the user's settings come before the defaults.
func TestEnginesThatAClusterRefuses(t *testing.T) {
	t.Parallel()
	for chosen, want := range map[string]string{"": mysqld.UnsafeEngines, "disabled_storage_engines=": "", "loose-disabled-storage-engines=CSV": "CSV"} {
		cluster := aCluster(2, func(c *v1.MySQLCluster) {
			if name, value, isChosen := strings.Cut(chosen, "="); isChosen {
				c.Spec.Config = map[string]string{name: value}
			}
		})
		if got, found := inForce(RenderConfig(WithTableDefaults(cluster)))[settingDisabled]; got != want || !found {
			t.Errorf("with %q it is %q, want %q", chosen, got, want)
		}
		if _, found := inForce(RenderConfig(cluster))[settingDisabled]; found != (chosen != "") {
			t.Error("the cluster itself was changed")
		}
	}
	set := as[appsv1.StatefulSet](t, StatefulSet(NamesOf(aCluster(2)), aCluster(2), StatefulSetInput{Scale: 2, ClaimSize: WantedStorage(aCluster(2)), InnoDBOnly: true}))
	if set.Labels[LabelEngines] != EnginesInnoDB || set.Spec.Template.Labels[LabelEngines] != "" || set.Spec.Selector.MatchLabels[LabelEngines] != "" {
		t.Errorf("the StatefulSet has the labels %v, its Pods %v, and selects %v", set.Labels, set.Spec.Template.Labels, set.Spec.Selector.MatchLabels)
	}
}

// TestKeysOfACluster: tables get a key if the user has neither chosen nor has them refused.
func TestKeysOfACluster(t *testing.T) {
	t.Parallel()
	for chosen, want := range map[string]string{
		"": "ON", "max_connections=5": "ON", "sql_generate_invisible_primary_key=OFF": "OFF", "loose-sql-generate-invisible-primary-key=OFF": "OFF",
		"sql_require_primary_key=ON": "", "loose_sql-require-primary-key=OFF": "",
	} {
		cluster := aCluster(2, func(c *v1.MySQLCluster) {
			if name, value, isChosen := strings.Cut(chosen, "="); isChosen {
				c.Spec.Config = map[string]string{name: value}
			}
		})
		if got := inForce(RenderConfig(WithTableDefaults(cluster)))[settingGenerate]; got != want {
			t.Errorf("with %q it is %q, want %q", chosen, got, want)
		}
		if got := inForce(RenderConfig(cluster))[settingGenerate]; got == "ON" {
			t.Errorf("with %q an earlier cluster gets keys", chosen)
		}
	}
}
