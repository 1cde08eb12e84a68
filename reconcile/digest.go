package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// digestsField is the field in which KeepDigest stores digests of what each of the operator's field managers applied. No Kubernetes object
// has such a field.
const digestsField = "mysql-operator/digests"

// KeepDigest returns a Transform for objects whose content only Client.Apply reads. It keeps the identity, the labels, the controller, the
// given fields ("spec.replicas", see Keep), and a digest of everything that the operator applied. The size of the result does not depend on
// the content, whoever wrote it.
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

// keepDigests keeps the names of the operator's field managers that applied something, each with the digest of what it applied.
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

// digestIn returns the digest that KeepDigest stored for a manager, and whether KeepDigest has transformed the object.
func digestIn(object *unstructured.Unstructured, manager string) (digest string, isDigested bool) {
	digests, isDigested := object.Object[digestsField].(map[string]any)
	digest, _ = digests[manager].(string)
	return digest, isDigested
}

// digestOf returns a digest of the fields that a manager owns in an object.
func digestOf(object map[string]any, owned ownership) string {
	return digest(owning(object, owned))
}

// wantedDigest returns the digest that digestOf returns for an object in which an apply of desired would change nothing.
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

// digest must resist content that an attacker crafts to collide: the operator never repairs content with an equal digest.
func digest(content any) string {
	document, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// owning returns the owned part of a value.
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

// withoutNil removes fields whose desired value is nil: an apply does not contain them.
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
