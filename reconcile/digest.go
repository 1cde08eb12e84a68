package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// digestsField is where an object that KeepDigest has transformed has the digest of what each of the operator's field managers applied. No
// object of Kubernetes has such a field.
const digestsField = "mysql-operator/digests"

// KeepDigest returns a Transform for objects of which only Client.Apply reads the content: it keeps the identity, the labels, the
// controller, the given fields ("spec.replicas", see Keep), and for everything that the operator applied a digest. The size of what is kept
// does not depend on the content, whoever wrote it.
func KeepDigest(paths ...string) cache.TransformFunc {
	wanted := fieldTreeOf(paths)
	return func(item any) (any, error) {
		object, ok := item.(*unstructured.Unstructured)
		if !ok {
			return item, nil
		}
		if _, isDone := object.Object[digestsField]; isDone {
			return item, nil
		}
		kept := &unstructured.Unstructured{Object: wanted.in(object)}
		kept.SetAPIVersion(object.GetAPIVersion())
		kept.SetKind(object.GetKind())
		keepIdentity(kept, object)
		kept.SetCreationTimestamp(object.GetCreationTimestamp())
		kept.SetGeneration(object.GetGeneration())
		kept.SetLabels(object.GetLabels())
		trimLabels(kept)
		kept.SetOwnerReferences(controllerOf(object))
		keepDigests(kept, object)
		return kept, nil
	}
}

// keepDigests keeps which of the operator's managers applied something, and the digest of it.
func keepDigests(kept, object *unstructured.Unstructured) {
	digests, entries := map[string]any{}, []any{}
	for _, entry := range ownEntries(object) {
		manager, _ := entry["manager"].(string)
		if owned, ok := ownedBy(object, manager); ok && digests[manager] == nil && len(digests) < maxAnnotations {
			digests[manager] = digestOf(object.Object, owned)
			entries = append(entries, map[string]any{"manager": manager, "operation": entry["operation"], versionField: entry[versionField]})
		}
	}
	kept.Object[digestsField] = digests
	if into, ok := kept.Object[metadataField].(map[string]any); ok && len(entries) > 0 {
		into[managedFieldsField] = entries
	}
}

// digestIn returns the digest that KeepDigest left of what a manager applied, and whether the object is one that KeepDigest has
// transformed.
func digestIn(object *unstructured.Unstructured, manager string) (digest string, isDigested bool) {
	digests, isDigested := object.Object[digestsField].(map[string]any)
	digest, _ = digests[manager].(string)
	return digest, isDigested
}

// digestOf returns a digest of what a manager owns of an object.
func digestOf(object map[string]any, owned ownership) string {
	return digest(owning(object, owned))
}

// wantedDigest returns what digestOf returns of an object in which an apply of the desired one would change nothing.
func wantedDigest(desired *unstructured.Unstructured) string {
	wanted := maps.Clone(desired.Object)
	for _, field := range []string{versionField, "kind", metadataField} {
		delete(wanted, field)
	}
	metadata, _ := desired.Object[metadataField].(map[string]any)
	if kept := withoutIdentity(metadata); len(kept) > 0 {
		wanted[metadataField] = kept
	}
	return digest(withoutNil(wanted))
}

// digest is safe against content that somebody makes to fit: one that is equal is never repaired.
func digest(content any) string {
	document, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// owning returns the part of a value that is owned.
func owning(value any, owned ownership) any {
	if len(owned) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, content := range value {
			if fields, ok := owned["f:"+name].(map[string]any); ok {
				kept[name] = owning(content, fields)
			}
		}
		return kept
	case []any:
		kept := []any{}
		for _, item := range value {
			if _, fields, ok := ownedItem(item, owned); ok {
				kept = append(kept, owning(item, fields))
			}
		}
		return kept
	default:
		return value
	}
}

// withoutNil leaves out fields that are desired to be nothing: an apply does not speak of them.
func withoutNil(content any) any {
	switch value := content.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, inner := range value {
			if inner != nil {
				kept[name] = withoutNil(inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(value))
		for _, item := range value {
			kept = append(kept, withoutNil(item))
		}
		return kept
	default:
		return value
	}
}
