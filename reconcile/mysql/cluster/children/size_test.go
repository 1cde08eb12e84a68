package children

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// resources reads "cpu=500m memory=2Gi".
func resources(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for one := range strings.FieldsSeq(text) {
		name, size, _ := strings.Cut(one, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(size)
	}
	return list
}

func TestWhatAMemberHas(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for name, test := range map[string]struct {
		requests, limits string
		want             sizing.Resources
	}{
		"nothing is said":               {"", "", sizing.Resources{CPU: 2000}},
		"limits":                        {"cpu=1 memory=1Gi", "cpu=4 memory=4Gi", sizing.Resources{CPU: 4000, Memory: 4 * gib}},
		"requests":                      {"cpu=500m memory=4Gi", "", sizing.Resources{CPU: 500, Memory: 4 * gib}},
		"a request that says nothing":   {"memory=64Mi", "", sizing.Resources{CPU: 2000}},
		"a limit of memory alone":       {"", "memory=2Gi", sizing.Resources{CPU: 2000, Memory: 2 * gib}},
		"a limit of memory, CPU by way": {"cpu=3", "memory=2Gi", sizing.Resources{CPU: 3000, Memory: 2 * gib}},
	} {
		cluster := aCluster(1, func(c *v1.MySQLCluster) {
			c.Spec.Resources = v1.Resources{Requests: resources(test.requests), Limits: resources(test.limits)}
		})
		if got := givenTo(cluster); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestLargePoolsHaveTimeToStop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits string
		config map[string]string
		want   int64
	}{
		"nothing is said":   {"", nil, 300},
		"64Gi":              {"memory=64Gi", nil, 300},
		"512Gi":             {"memory=512Gi", nil, 1800},
		"a pool of 100 GiB": {"", map[string]string{"innodb-buffer-pool-size": "100G"}, 572},
	} {
		cluster := aCluster(1, func(c *v1.MySQLCluster) {
			c.Spec.Resources.Limits, c.Spec.Config = resources(test.limits), test.config
		})
		if got := terminationGrace(cluster); got != test.want {
			t.Errorf("%s: %d seconds, want %d", name, got, test.want)
		}
	}
}

// TestContainersThatGetMemoryAndCPU: the init container, which sizes mysqld, and the agent, whose metrics report it. Only the init
// container gets the CPU.
func TestContainersThatGetMemoryAndCPU(t *testing.T) {
	t.Parallel()
	for limits, want := range map[string]map[string]string{
		"memory=1Gi": {"prepare MEMBER_CPU": "2000", "prepare MEMBER_MEMORY": "1073741824", "agent MEMBER_MEMORY": "1073741824"},
		"":           {"prepare MEMBER_CPU": "2000"},
	} {
		cluster := aCluster(1, func(c *v1.MySQLCluster) { c.Spec.Resources.Limits = resources(limits) })
		got := map[string]string{}
		spec := renderSet(t, cluster).Spec.Template.Spec
		for _, container := range append(spec.InitContainers, spec.Containers...) {
			for _, variable := range container.Env {
				if variable.Name == agent.EnvMemory || variable.Name == agent.EnvCPU {
					got[container.Name+" "+variable.Name] = variable.Value
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", limits, diff)
		}
	}
}

// TestASettingInTwoSpellingsMeansOneThing, in every order of a map: another template would restart Pods.
func TestASettingInTwoSpellingsMeansOneThing(t *testing.T) {
	t.Parallel()
	config := map[string]string{"innodb_buffer_pool_size": "1G", "innodb-buffer-pool-size": "2G", "loose_innodb_buffer_pool_size": "3G", "loose-innodb-buffer-pool-size": "4G"}
	for range 100 {
		if got := plainSettings(config)["innodb_buffer_pool_size"]; got != "3G" {
			t.Fatalf("it is %s, and mysqld takes the last of what renderConfig writes, 3G", got)
		}
	}
}
