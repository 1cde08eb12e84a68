// Package twoversions is a release of the operator that never was: ConfigMonitor has a second version, v2, that is arranged differently.
// It shows that crds/conversion loses nothing.
package twoversions

import (
	_ "embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// ConfigMonitor is version v2. What v1 says and v2 does not: the spelling spec.configmap, status.lastRestart.configMapResourceVersion
// and the owner of a workload. What v2 says and v1 does not: spec.source.keys, spec.targets.batch, status.restart.by and the progress of a
// workload.
type ConfigMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   Spec   `json:"spec,omitzero"`
	Status Status `json:"status,omitzero"`
}

// Spec is what the user wants.
type Spec struct {
	Source  Source  `json:"source,omitzero"`
	Targets Targets `json:"targets,omitzero"`
}

// Source is what is watched.
type Source struct {
	// Name of the ConfigMap.
	Name string `json:"name,omitempty"`
	// Keys limits the watch to these; empty means all.
	Keys []string `json:"keys,omitempty"`
}

// Targets are what is restarted.
type Targets struct {
	// Selector has the labels of the pods, all of which they must carry.
	Selector metav1.LabelSelector `json:"selector,omitzero"`
	// Batch is how many workloads are restarted at once; nil means one.
	Batch *int64 `json:"batch,omitempty"`
}

// Status is what the operator has seen and done.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Observed           Observed           `json:"observed,omitzero"`
	Restart            *Restart           `json:"restart,omitempty"`
}

// Observed is what the pods were last brought in line with.
type Observed struct {
	Source string `json:"source,omitempty"`
	Hash   string `json:"hash,omitempty"`
}

// Restart is the last restart, or the one under way.
type Restart struct {
	Began      metav1.Time  `json:"began"`
	Ended      *metav1.Time `json:"ended,omitempty"`
	Generation int64        `json:"generation,omitempty"`
	Hash       string       `json:"hash,omitempty"`
	Reason     string       `json:"reason,omitempty"`
	// By is who caused it.
	By        string     `json:"by,omitempty"`
	Workloads []Workload `json:"workloads,omitempty"`
}

// Workload is one object that is restarted.
type Workload struct {
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	UID     string      `json:"uid,omitempty"`
	Action  v1.Action   `json:"action"`
	Time    metav1.Time `json:"time,omitzero"`
	Message string      `json:"message,omitempty"`
	// Percent is how far it got.
	Percent *int64 `json:"percent,omitempty"`
}

//go:embed versions.yaml
var secondVersion []byte

// Definition returns the definition of ConfigMonitor as the operator brings it, with version v2 added. v1 is stored. It says nothing of
// how to convert.
func Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	kinds, err := schema.Select([]string{"ConfigMonitor"})
	if err != nil {
		return nil, err
	}
	document, err := schema.Definition(kinds[0])
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, definition); err != nil {
		return nil, fmt.Errorf("read the definition of v1: %w", err)
	}
	version := apiextensionsv1.CustomResourceDefinitionVersion{}
	if err := yaml.UnmarshalStrict(secondVersion, &version); err != nil {
		return nil, fmt.Errorf("read the definition of v2: %w", err)
	}
	definition.Spec.Versions = append(definition.Spec.Versions, version)
	return definition, nil
}
