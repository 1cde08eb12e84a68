package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
	"github.com/mysql-operator/mysql-operator/schema/mysql/settings"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const (
	// conditionOvercommitted is there while a member could need more memory than it has.
	conditionOvercommitted = "MemoryOvercommitted"
	// reasonConfig is its reason: what spec.config asks for.
	reasonConfig = "ConfigExceedsMemory"

	// leastRequest is the smallest request of memory, in bytes, that says something about how much there is; a smaller one only reserves
	// something.
	leastRequest = 512 << 20
	// defaultCPU is how much CPU a member is taken to have that says nothing, in thousandths.
	defaultCPU = 2000
)

// givenTo is what a member's mysqld has, apart from its volume. A limit counts, else a request.
func givenTo(cluster v1.MySQLCluster) sizing.Given {
	resources := cluster.Spec.Resources
	given := sizing.Given{Memory: resources.Limits.Memory().Value(), CPU: resources.Limits.Cpu().MilliValue()}
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

// sizeEnv tells the init container.
func sizeEnv(cluster v1.MySQLCluster) []*corev1ac.EnvVarApplyConfiguration {
	cpu := corev1ac.EnvVar().WithName(agent.EnvCPU).WithValue(fmt.Sprint(givenTo(cluster).CPU))
	return append([]*corev1ac.EnvVarApplyConfiguration{cpu}, memoryEnv(cluster)...)
}

// memoryEnv is the same of memory alone, for the agent too, whose metrics tell it: a container sees its own limit only.
func memoryEnv(cluster v1.MySQLCluster) []*corev1ac.EnvVarApplyConfiguration {
	memory := givenTo(cluster).Memory
	if memory == 0 {
		return nil
	}
	return []*corev1ac.EnvVarApplyConfiguration{corev1ac.EnvVar().WithName(agent.EnvMemory).WithValue(fmt.Sprint(memory))}
}

// overcommitted says how members could need more memory than they may use; empty where they could not. What a request only reserves does
// not bound them.
func overcommitted(cluster v1.MySQLCluster) string {
	return sizing.Overcommitted(cluster.Spec.Resources.Limits.Memory().Value(), plainSettings(cluster.Spec.Config))
}

// plainSettings are settings in the spelling of the manual. Of one given in two spellings, which an object of before the schema refused it
// may have, the last counts, in the order of renderConfig.
func plainSettings(config map[string]string) map[string]string {
	plain := map[string]string{}
	rendered := underscored(config)
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		plain[strings.TrimPrefix(settings.Plain(name), "plugin_")] = rendered[name]
	}
	return plain
}

// describeMemory sets the condition MemoryOvercommitted, or takes it away.
func describeMemory(status *v1.MySQLClusterStatus, cluster v1.MySQLCluster) {
	told := overcommitted(cluster)
	if told == "" {
		meta.RemoveStatusCondition(&status.Conditions, conditionOvercommitted)
		return
	}
	reconcile.SetCondition(&status.Conditions, metav1.Condition{
		Type: conditionOvercommitted, Status: metav1.ConditionTrue, Reason: reasonConfig, Message: told, ObservedGeneration: status.ObservedGeneration,
	})
}
