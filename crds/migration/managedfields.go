package migration

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// translation changes entries in managedFields.
type translation struct {
	// unchangedVersions are the API versions whose entries do not change.
	unchangedVersions map[string]bool
	// to is the API version for the other entries. rename says that they get its name, because versions differ only in their names.
	// Otherwise they are dropped.
	to     string
	rename bool
	// fallbackManager is the manager of the new entry if no other entry is left.
	fallbackManager string
}

func translationFor(definition *apiextensionsv1.CustomResourceDefinition, keeper string) translation {
	full := func(version string) string {
		return apischema.GroupVersion{Group: definition.Spec.Group, Version: version}.String()
	}
	conversion := definition.Spec.Conversion
	found := translation{unchangedVersions: map[string]bool{}, to: full(storageVersion(definition)), fallbackManager: keeper}
	found.rename = conversion == nil || conversion.Strategy == apiextensionsv1.NoneConverter
	for _, version := range definition.Spec.Versions {
		if version.Served || version.Storage {
			found.unchangedVersions[full(version.Name)] = true
		}
	}
	return found
}

// apply returns the translated entries, and whether they changed.
func (t translation) apply(entries []metav1.ManagedFieldsEntry) (translated []metav1.ManagedFieldsEntry, changed bool, err error) {
	places := map[metav1.ManagedFieldsEntry]int{}
	for _, entry := range entries {
		if !t.unchangedVersions[entry.APIVersion] {
			changed = true
			if !t.rename {
				continue
			}
			entry.APIVersion = t.to
		}
		at, double := places[identifier(entry)]
		if !double {
			places[identifier(entry)] = len(translated)
			translated = append(translated, entry)
			continue
		}
		// The API server would keep one of the two entries and drop the fields of the other.
		if err := mergeFields(&translated[at], entry); err != nil {
			return nil, false, err
		}
	}
	if changed && len(translated) == 0 {
		translated = append(translated, t.minimalEntry())
	}
	return translated, changed, nil
}

// identifier returns the parts by which the API server distinguishes entries: for server-side apply the version does not count
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management).
func identifier(entry metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	entry.FieldsType, entry.FieldsV1, entry.Time = "", nil, nil
	if entry.Operation == metav1.ManagedFieldsOperationApply {
		entry.APIVersion = ""
	}
	return entry
}

// mergeFields adds the fields of the other entry to an entry, and sets the later time of the two.
func mergeFields(entry *metav1.ManagedFieldsEntry, other metav1.ManagedFieldsEntry) error {
	own, err := fieldsOf(*entry)
	if err != nil {
		return err
	}
	theirs, err := fieldsOf(other)
	if err != nil {
		return err
	}
	united, err := own.Union(theirs).ToJSON()
	if err != nil {
		return fmt.Errorf("write the fields of manager %s: %w", entry.Manager, err)
	}
	entry.FieldsType, entry.FieldsV1 = "FieldsV1", metav1.NewFieldsV1(string(united))
	if entry.Time == nil || (other.Time != nil && entry.Time.Before(other.Time)) {
		entry.Time = other.Time
	}
	return nil
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("read the fields of manager %s: %w", entry.Manager, err)
	}
	return set, nil
}

// minimalEntry returns an entry that owns only the name. Without any entry, the API server would treat the object as one that was never
// applied. It would give all fields to a manager "before-first-apply", which would conflict with the next apply of any client.
func (t translation) minimalEntry() metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: t.fallbackManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: t.to,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:name":{}}}`),
	}
}

// emptyPatch changes nothing, but makes the API server store the object in the storage version.
const emptyPatch = `{}`

// patchFor returns the merge patch that makes the API server rewrite the object.
func (t translation) patchFor(object *metav1.PartialObjectMetadata) ([]byte, error) {
	entries, changed, err := t.apply(object.ManagedFields)
	if err != nil || !changed {
		return []byte(emptyPatch), err
	}
	metadata := map[string]any{"resourceVersion": object.ResourceVersion, "managedFields": entries}
	return json.Marshal(map[string]any{"metadata": metadata})
}
