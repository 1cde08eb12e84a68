package reconcile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mysql-operator/mysql-operator/schema"
)

// ownership is a managedFields entry as data (Kubernetes documentation, "Server-Side Apply"; the API reference describes the encoding under
// FieldsV1). It is a map whose keys are "f:<field>", "k:<the key fields of a list item, as JSON>", "v:<a set's value, as JSON>", or "." for
// the item itself. Its values are such maps again. An empty map marks a field that is owned as a whole.
type ownership map[string]any

// ownedBy returns what a field manager applied to the object. It returns false if the manager never applied anything in the object's API
// version.
func ownedBy(object *unstructured.Unstructured, manager string) (ownership, bool) {
	metadata, _ := object.Object[metadataField].(map[string]any)
	entries, _ := metadata[managedFieldsField].([]any)
	for _, item := range entries {
		entry, ok := item.(map[string]any)
		if !ok || entry["manager"] != manager || isForeignEntry(entry) || entry[versionField] != object.GetAPIVersion() {
			continue
		}
		switch fields := entry[fieldsField].(type) {
		case map[string]any: // as the API server sends it
			return fields, true
		case string: // as TrimMetadata leaves it
			tree := ownership{}
			return tree, json.Unmarshal([]byte(fields), &tree) == nil
		}
	}
	return nil, false
}

// difference compares a desired object with the live one, and returns the path of the first field that an apply would change. It compares
// the fields that desired contains and the fields that its manager owns. An apply would change a value that differs, a desired field that
// the manager does not own (yet, or any more), and an owned field that is no longer desired. Empty means that an apply would change
// nothing. Defaults of the API server and fields that others write are not compared.
//
// In a field that is owned as a whole, nothing distinguishes defaults from values that were applied earlier and are no longer desired.
// There, additional values count as defaults if an equal object was applied last (see mark).
func difference(desired, live *unstructured.Unstructured, owned ownership) string {
	wanted := map[string]any{}
	for field, value := range desired.Object {
		if field != versionField && field != "kind" && field != metadataField {
			wanted[field] = value
		}
	}
	if metadata, ok := desired.Object[metadataField].(map[string]any); ok {
		wanted[metadataField] = withoutIdentity(metadata)
	}
	c := comparison{isAppliedLast: isMarkedAlike(desired, live, owned)}
	where := c.inMap(wanted, live.Object, owned, "")
	if where == "" && markOf(desired) != "" && !c.isAppliedLast {
		return ".metadata.annotations." + schema.AppliedAnnotation
	}
	return where
}

// comparison compares a desired object with a live one.
type comparison struct {
	// isAppliedLast is true if an equal desired object was applied last to the live object.
	isAppliedLast bool
}

// withoutIdentity leaves out the fields that identify an object: no manager ever owns them.
func withoutIdentity(metadata map[string]any) map[string]any {
	kept := map[string]any{}
	for field, value := range metadata {
		switch field {
		case "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields":
		default:
			kept[field] = value
		}
	}
	return kept
}

func (c comparison) in(desired, live any, owned ownership, path string) string {
	if len(owned) == 0 {
		if reflect.DeepEqual(desired, live) || c.isAppliedLast && covers(live, desired) {
			return ""
		}
		return path
	}
	switch wanted := desired.(type) {
	case map[string]any:
		if present, ok := live.(map[string]any); ok {
			return c.inMap(wanted, present, owned, path)
		}
	case []any:
		if present, ok := live.([]any); ok {
			return c.inList(wanted, present, owned, path)
		}
	}
	return path
}

func (c comparison) inMap(desired, live map[string]any, owned ownership, path string) string {
	for field, value := range desired {
		if isLeftOut(field, value, path) {
			continue
		}
		fields, ok := owned["f:"+field].(map[string]any)
		if !ok {
			return path + "." + field
		}
		present, ok := live[field]
		if !ok {
			return path + "." + field
		}
		if found := c.in(value, present, fields, path+"."+field); found != "" {
			return found
		}
	}
	for key := range owned {
		field, ok := strings.CutPrefix(key, "f:")
		if ok && desired[field] == nil && field != schema.AppliedAnnotation {
			return path + "." + field
		}
	}
	return ""
}

// isLeftOut reports whether a desired field contains nothing that can differ.
func isLeftOut(field string, value any, path string) bool {
	isEmptyMetadata := path == "" && field == metadataField && reflect.DeepEqual(value, map[string]any{})
	return value == nil || field == schema.AppliedAnnotation || isEmptyMetadata
}

// inList compares lists whose items are identified by key fields or, in sets, by value. The order counts.
func (c comparison) inList(desired, live []any, owned ownership, path string) string {
	if len(desired) != ownedItems(owned) {
		return path
	}
	after := -1
	for index, item := range desired {
		at := fmt.Sprintf("%s[%d]", path, index)
		key, fields, ok := ownedItem(item, owned)
		if !ok {
			return at
		}
		position, ok := find(live, key)
		if !ok || position < after {
			return at
		}
		after = position
		if found := c.in(item, live[position], fields, at); found != "" {
			return found
		}
	}
	return ""
}

func ownedItems(owned ownership) int {
	count := 0
	for key := range owned {
		if key != "." {
			count++
		}
	}
	return count
}

// ownedItem finds the entry of ownership for a list item, and returns the item's key as a value to search for. The API server defaulted a
// key field that the item does not set; it matches.
func ownedItem(item any, owned ownership) (key any, fields ownership, ok bool) {
	for name, value := range owned {
		encoded, isKey := strings.CutPrefix(name, "k:")
		if !isKey {
			encoded, ok = strings.CutPrefix(name, "v:")
			if !ok {
				continue
			}
		}
		candidate, valid := decodeKey(encoded)
		if !valid || !matches(item, candidate) {
			continue
		}
		fields, ok := value.(map[string]any)
		return candidate, fields, ok
	}
	return nil, nil, false
}

func decodeKey(encoded string) (any, bool) {
	var key any
	// This decoder reads whole numbers as int64, as they are in objects.
	err := utiljson.Unmarshal([]byte(encoded), &key)
	return key, err == nil
}

func matches(item, key any) bool {
	keys, ok := key.(map[string]any)
	if !ok {
		return reflect.DeepEqual(item, key)
	}
	fields, ok := item.(map[string]any)
	if !ok {
		return false
	}
	shared := 0
	for name, value := range keys {
		given, ok := fields[name]
		if !ok {
			continue
		}
		if !reflect.DeepEqual(given, value) {
			return false
		}
		shared++
	}
	return shared > 0
}

func find(live []any, key any) (int, bool) {
	for position, item := range live {
		if matches(item, key) {
			return position, true
		}
	}
	return 0, false
}
