package crds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Change is one difference between two editions of a definition.
type Change struct {
	// Version is the API version it is about; empty if it is about the definition as a whole.
	Version string
	// Path is the field, such as spec.storage, spec.hosts[].name (of each item) or spec.config.* (of each value); empty if it is
	// about objects as a whole.
	Path string
	// What is different, in plain words, such as "now required" or "maximum 9 → 5".
	What string
	// Breaking says that some object or manifest that was accepted could be refused, lose data or mean something else.
	Breaking bool
}

func (c Change) String() string {
	text := c.What
	if c.Path != "" {
		text = c.Path + ": " + text
	}
	if c.Version != "" {
		text = c.Version + " " + text
	}
	if c.Breaking {
		text += " (breaking)"
	}
	return text
}

// Changes tells what differs between a definition as the cluster has it and as it is wanted: the schemas and subresources of each API
// version both have, what becomes of versions, scope and conversion. Descriptions and printer columns do not matter. What it cannot be
// sure about counts as breaking: looking at the objects (ObjectChecker) then tells whether any is harmed. The order is always the same:
// the whole definition first, then version by version in the order of has, then by path.
func Changes(has, wants *apiextensionsv1.CustomResourceDefinition) []Change {
	changes := definitionChanges(has, wants)
	for _, former := range has.Spec.Versions {
		latter := versionOf(wants, former.Name)
		changes = append(changes, sorted(versionChanges(has, wants, former, latter))...)
	}
	for _, added := range wants.Spec.Versions {
		if versionOf(has, added.Name) == nil {
			changes = append(changes, sorted(addedVersion(has, wants, added))...)
		}
	}
	return changes
}

func sorted(changes []Change) []Change {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.What, b.What))
	})
	return slices.Compact(changes)
}

func definitionChanges(has, wants *apiextensionsv1.CustomResourceDefinition) []Change {
	changes := []Change{}
	if has.Spec.Scope != wants.Spec.Scope {
		changes = append(changes, Change{What: fmt.Sprintf("scope %s → %s", has.Spec.Scope, wants.Spec.Scope), Breaking: true})
	}
	if has.Spec.PreserveUnknownFields && !wants.Spec.PreserveUnknownFields {
		changes = append(changes, Change{What: "unknown fields no longer kept", Breaking: true})
	}
	if before, after := strategyOf(has), strategyOf(wants); before != after {
		// With a single version there is nothing yet that was converted the one way and would be the other.
		changes = append(changes, Change{What: fmt.Sprintf("conversion %s → %s", before, after), Breaking: len(has.Spec.Versions) > 1})
	}
	return changes
}

func strategyOf(definition *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.ConversionStrategyType {
	if definition.Spec.Conversion == nil || definition.Spec.Conversion.Strategy == "" {
		return apiextensionsv1.NoneConverter
	}
	return definition.Spec.Conversion.Strategy
}

func versionOf(definition *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	at := slices.IndexFunc(definition.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return version.Name == name })
	if at < 0 {
		return nil
	}
	return &definition.Spec.Versions[at]
}

func storedAs(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	at := slices.IndexFunc(definition.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return version.Storage })
	if at < 0 {
		return nil
	}
	return &definition.Spec.Versions[at]
}

// versionChanges compares what a version was with what it becomes; latter is nil if it vanishes.
func versionChanges(has, wants *apiextensionsv1.CustomResourceDefinition, former apiextensionsv1.CustomResourceDefinitionVersion, latter *apiextensionsv1.CustomResourceDefinitionVersion) []Change {
	if latter == nil {
		used := former.Served || former.Storage || slices.Contains(has.Status.StoredVersions, former.Name)
		return []Change{{Version: former.Name, What: "version removed", Breaking: used}}
	}
	found := subresourceDifferences(former.Subresources, latter.Subresources)
	found = append(found, selectableDifferences(former.SelectableFields, latter.SelectableFields)...)
	found = append(found, schemaDifferences(rootOf(former), rootOf(*latter))...)
	if hasStatus(&former) && hasStatus(latter) {
		found = withStatusDefaults(found)
	}
	found = append(found, roleDifferences(has, wants, former, *latter)...)
	return changesOf(former.Name, found)
}

// withStatusDefaults takes defaults that come in a status for harmless: where a status is a subresource nobody's manifest has one, so that no
// manifest means something else.
func withStatusDefaults(found []difference) []difference {
	for i, one := range found {
		inStatus := one.path == "status" || strings.HasPrefix(one.path, "status.")
		if inStatus && one.added {
			found[i].breaking = false
		}
	}
	return found
}

// roleDifferences compares what a version that stays is there for.
func roleDifferences(has, wants *apiextensionsv1.CustomResourceDefinition, former, latter apiextensionsv1.CustomResourceDefinitionVersion) []difference {
	found := []difference{}
	if former.Served && !latter.Served {
		found = append(found, difference{what: "no longer served", breaking: true})
	}
	if !former.Deprecated && latter.Deprecated {
		found = append(found, difference{what: "now deprecated"})
	}
	served, stored := !former.Served && latter.Served, !former.Storage && latter.Storage
	if served {
		found = append(found, difference{what: "now served"})
	}
	if stored {
		found = append(found, difference{what: "objects are stored in this version from now on", breaking: strategyOf(wants) != apiextensionsv1.NoneConverter})
	}
	if served || stored {
		found = append(found, unlikeStored(has, wants, latter)...)
	}
	return found
}

// addedVersion tells about a version the cluster does not have yet.
func addedVersion(has, wants *apiextensionsv1.CustomResourceDefinition, added apiextensionsv1.CustomResourceDefinitionVersion) []Change {
	found := []difference{{what: "version added"}}
	if added.Storage {
		found = append(found, difference{what: "objects are stored in this version from now on", breaking: strategyOf(wants) != apiextensionsv1.NoneConverter})
	}
	if added.Served || added.Storage {
		found = append(found, unlikeStored(has, wants, added)...)
	}
	return changesOf(added.Name, found)
}

// unlikeStored tells what objects as they are stored today would lose or be refused for in a version they had not to fit before.
// Without conversion an object is the same in all versions but for its apiVersion. A converter is trusted to do its work.
func unlikeStored(has, wants *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) []difference {
	stored := storedAs(has)
	if stored == nil || stored.Name == version.Name || strategyOf(wants) != apiextensionsv1.NoneConverter {
		return nil
	}
	found := []difference{}
	for _, one := range schemaDifferences(rootOf(*stored), rootOf(version)) {
		if one.breaking && !one.defaulting {
			found = append(found, difference{path: one.path, what: fmt.Sprintf("unlike %s: %s", stored.Name, one.what), breaking: true})
		}
	}
	return found
}

func changesOf(version string, found []difference) []Change {
	changes := make([]Change, 0, len(found))
	for _, one := range found {
		changes = append(changes, Change{Version: version, Path: one.path, What: one.what, Breaking: one.breaking})
	}
	return changes
}

func subresourceDifferences(has, wants *apiextensionsv1.CustomResourceSubresources) []difference {
	if has == nil {
		has = &apiextensionsv1.CustomResourceSubresources{}
	}
	if wants == nil {
		wants = &apiextensionsv1.CustomResourceSubresources{}
	}
	found := []difference{}
	switch {
	case has.Status != nil && wants.Status == nil:
		found = append(found, difference{what: "status subresource removed", breaking: true})
	case has.Status == nil && wants.Status != nil:
		// A status written together with the rest is ignored from now on.
		found = append(found, difference{what: "status subresource added", breaking: true})
	}
	return append(found, scaleDifferences(has.Scale, wants.Scale)...)
}

func scaleDifferences(has, wants *apiextensionsv1.CustomResourceSubresourceScale) []difference {
	switch {
	case has == nil && wants == nil:
		return nil
	case wants == nil:
		return []difference{{what: "scale subresource removed", breaking: true}}
	case has == nil:
		// Numbers of replicas that are negative or beyond 32 bits are refused from now on, whatever the schema says.
		return []difference{{what: "scale subresource added", breaking: true}}
	}
	found := []difference{}
	for _, path := range []struct{ name, has, wants string }{
		{"specReplicasPath", has.SpecReplicasPath, wants.SpecReplicasPath},
		{"statusReplicasPath", has.StatusReplicasPath, wants.StatusReplicasPath},
		{"labelSelectorPath", textOf(has.LabelSelectorPath), textOf(wants.LabelSelectorPath)},
	} {
		if path.has != path.wants {
			found = append(found, difference{what: fmt.Sprintf("scale subresource: %s %s → %s", path.name, orNone(path.has), orNone(path.wants)), breaking: true})
		}
	}
	return found
}

func selectableDifferences(has, wants []apiextensionsv1.SelectableField) []difference {
	found := []difference{}
	for _, field := range has {
		if !slices.Contains(wants, field) {
			found = append(found, difference{what: "field selector " + field.JSONPath + " removed", breaking: true})
		}
	}
	for _, field := range wants {
		if !slices.Contains(has, field) {
			found = append(found, difference{what: "field selector " + field.JSONPath + " added"})
		}
	}
	return found
}

func rootOf(version apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil {
		return nil
	}
	return version.Schema.OpenAPIV3Schema
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
