package children

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	"github.com/mysql-operator/mysql-operator/schema/mysql/settings"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// leastRequest is the smallest memory request, in bytes, that shows how much memory there is; a smaller one only reserves some.
	leastRequest = 512 << 20
	// defaultCPU is the assumed CPU of a member that sets none, in thousandths.
	defaultCPU = 2000
)

// givenTo returns what a member's mysqld has, apart from its volume: the limit or, without one, the request.
func givenTo(cluster v1.MySQLCluster) sizing.Resources {
	resources := cluster.Spec.Resources
	given := sizing.Resources{Memory: resources.Limits.Memory().Value(), CPU: resources.Limits.Cpu().MilliValue()}
	if request := resources.Requests.Memory().Value(); given.Memory == 0 && request >= leastRequest {
		given.Memory = request
	}
	if given.CPU == 0 {
		given.CPU = resources.Requests.Cpu().MilliValue()
	}
	if given.CPU == 0 {
		given.CPU = defaultCPU
	}
	return given
}

// sizeEnv passes that to the init container.
func sizeEnv(cluster v1.MySQLCluster) []*corev1ac.EnvVarApplyConfiguration {
	cpu := corev1ac.EnvVar().WithName(agent.EnvCPU).WithValue(fmt.Sprint(givenTo(cluster).CPU))
	return append([]*corev1ac.EnvVarApplyConfiguration{cpu}, memoryEnv(cluster)...)
}

// memoryEnv passes the memory alone, also to the agent, whose metrics report it: a container sees only its own limit.
func memoryEnv(cluster v1.MySQLCluster) []*corev1ac.EnvVarApplyConfiguration {
	memory := givenTo(cluster).Memory
	if memory == 0 {
		return nil
	}
	return []*corev1ac.EnvVarApplyConfiguration{corev1ac.EnvVar().WithName(agent.EnvMemory).WithValue(fmt.Sprint(memory))}
}

// Overcommitted says how members could need more memory than they may use; empty if they cannot. A request does not count, because it
// limits nothing.
func Overcommitted(cluster v1.MySQLCluster) string {
	return sizing.Overcommitted(cluster.Spec.Resources.Limits.Memory().Value(), plainSettings(cluster.Spec.Config))
}

// plainSettings returns settings in the spelling of the manual. An object from before the schema refused that may have a setting in two
// spellings: the last one counts, in the order of RenderConfig.
func plainSettings(config map[string]string) map[string]string {
	plain := map[string]string{}
	rendered := underscored(config)
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		plain[strings.TrimPrefix(settings.Plain(name), "plugin_")] = rendered[name]
	}
	return plain
}

// defaultStorage is the schema's default, for objects that were created without it.
const defaultStorage = "1Gi"

// WantedStorage returns the size of a member's volume that the spec asks for.
func WantedStorage(cluster v1.MySQLCluster) resource.Quantity {
	return quantityOr(cluster.Spec.Storage, defaultStorage)
}

// quantityOr returns a quantity or, if the user set none, another.
func quantityOr(quantity resource.Quantity, otherwise string) resource.Quantity {
	if quantity.IsZero() {
		return resource.MustParse(otherwise)
	}
	return quantity
}

// WantedReplicas returns the number of members that the spec asks for.
func WantedReplicas(cluster v1.MySQLCluster) int {
	if cluster.Spec.Replicas == nil {
		return DefaultReplicas
	}
	return int(*cluster.Spec.Replicas)
}

// DefaultReplicas is the schema's default, for objects that were created without it.
const DefaultReplicas = 2
