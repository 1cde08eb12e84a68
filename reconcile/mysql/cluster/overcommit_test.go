package cluster

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// TestOvercommittedMemoryIsReported: once, and again when it changes. If the settings fit, there is no condition.
func TestOvercommittedMemoryIsReported(t *testing.T) {
	t.Parallel()
	cluster := aCluster(1, func(c *v1.MySQLCluster) {
		c.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
	})
	next := func(config map[string]string) (condition string, events int) {
		cluster.Spec.Config = maps.Clone(config)
		before := cluster.Status
		after := previousStatus(cluster)
		describeMemory(&after, cluster)
		cluster.Status = after
		if found := meta.FindStatusCondition(after.Conditions, conditionOvercommitted); found != nil {
			condition = found.Message
		}
		return condition, len(warningEvents(before, after))
	}
	if told, events := next(nil); told != "" || events != 0 {
		t.Errorf("it says %q", told)
	}
	large := map[string]string{"loose-innodb_buffer_pool_size": "1900M"}
	if told, events := next(large); !strings.Contains(told, "1900 MiB") || events != 1 {
		t.Errorf("it says %q, in %d events", told, events)
	}
	if told, events := next(large); told == "" || events != 0 {
		t.Errorf("it says %q, in %d more events", told, events)
	}
	if told, events := next(map[string]string{"innodb_buffer_pool_size": "1G"}); told != "" || events != 0 {
		t.Errorf("it still says %q", told)
	}
}
