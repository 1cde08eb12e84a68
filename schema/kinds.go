package schema

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MySQLGroup is the API group of the MySQL kinds, and the prefix of the operator's own labels and annotations.
const MySQLGroup = "cr.mysqloperator.grtl.github.com"

// AppliedAnnotation is the annotation of a child with a spec that holds the digest of what the operator applied last.
const AppliedAnnotation = MySQLGroup + "/applied"

// MagalixGroup is the API group of ConfigMonitor.
const MagalixGroup = "magalix.com"

// PoCGroup is the API group of MyCustomResource.
const PoCGroup = "poc.test.domain"

// ScheduleGroup is the API group of TDSet.
const ScheduleGroup = "schedule.rs"

// PulsarGroup is the API group of PulsarConsumer.
const PulsarGroup = "pulsar.pulsarconsumer.krvarma.com"

// VMGroupGroup is the API group of VmGroup.
const VMGroupGroup = "vm.codeconnect.vmworld.com"

// Kind is one row of the table of kinds.
type Kind struct {
	// Group, Version and Kind are the apiVersion and kind that a user writes.
	Group, Version, Kind string
	// Plural is the resource's name in URLs and RBAC rules: lower case.
	Plural string
	// Default says that the operator serves the kind when --kinds is not set.
	Default bool
}

// Kinds returns the table of kinds, in the order for help texts. Each call returns a new slice.
func Kinds() []Kind {
	return []Kind{
		{Group: MySQLGroup, Version: "v1", Kind: "MySQLCluster", Plural: "mysqlclusters", Default: true},
		{Group: MySQLGroup, Version: "v1", Kind: "MySQLBackupSchedule", Plural: "mysqlbackupschedules", Default: true},
		{Group: MySQLGroup, Version: "v1", Kind: "MySQLBackupInstance", Plural: "mysqlbackupinstances", Default: true},
		{Group: MagalixGroup, Version: "v1", Kind: "ConfigMonitor", Plural: "configmonitors"},
		{Group: ScheduleGroup, Version: "v1", Kind: "TDSet", Plural: "tdsets"},
		{Group: PulsarGroup, Version: "v1", Kind: "PulsarConsumer", Plural: "pulsarconsumers"},
		{Group: VMGroupGroup, Version: "v1alpha1", Kind: "VmGroup", Plural: "vmgroups"},
		{Group: PoCGroup, Version: "v1", Kind: "MyCustomResource", Plural: "mycustomresources"},
	}
}

// GVK returns the kind as API machinery names it in an object's apiVersion and kind.
func (k Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// GVR returns the kind as API machinery names it in URLs.
func (k Kind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Plural}
}

// DefinitionName returns the name that the kind's CustomResourceDefinition must have: "<plural>.<group>".
func (k Kind) DefinitionName() string {
	return k.Plural + "." + k.Group
}

// Select returns the kinds with these names, in the table's order and each once. A name is a kind ("MySQLCluster"), a plural
// ("mysqlclusters") or "all", in any letter case. No names mean the default kinds. An unknown name is an error that lists the known ones.
func Select(names []string) ([]Kind, error) {
	wanted := []string{}
	for _, name := range names {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			wanted = append(wanted, name)
		}
	}
	if unknown := slices.IndexFunc(wanted, isUnknown); unknown >= 0 {
		return nil, fmt.Errorf("select kinds: no kind is called %q: use %s or all", wanted[unknown], strings.Join(KindNames(), ", "))
	}

	all := slices.Contains(wanted, "all")
	return slices.DeleteFunc(Kinds(), func(kind Kind) bool {
		if len(wanted) == 0 {
			return !kind.Default
		}
		return !all && !slices.ContainsFunc(wanted, kind.isCalled)
	}), nil
}

// KindNames returns the names of all kinds in the table, for help texts and error messages.
func KindNames() []string {
	kinds := Kinds()
	names := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		names = append(names, kind.Kind)
	}
	return names
}

func (k Kind) isCalled(lowerName string) bool {
	return strings.EqualFold(lowerName, k.Kind) || lowerName == k.Plural
}

func isUnknown(lowerName string) bool {
	known := func(kind Kind) bool { return kind.isCalled(lowerName) }
	return lowerName != "all" && !slices.ContainsFunc(Kinds(), known)
}
