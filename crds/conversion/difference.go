package conversion

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// path leads to a value in an object: names of fields (string) and, in lists with keys, the keys of an element (map[string]any).
type path []any

func (p path) with(step any) path {
	return append(slices.Clip(p), step)
}

// fields returns the names of the path without list elements: "status.conditions" for every condition.
func (p path) fields() string {
	names := []string{}
	for _, step := range p {
		if name, isField := step.(string); isField {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

// change is one step from a base to a wanted value.
type change struct {
	// At is the path of the value.
	At path `json:"at"`
	// Set is the wanted value.
	Set any `json:"set,omitempty"`
	// Remove says that the wanted value is missing.
	Remove bool `json:"remove,omitempty"`
	// Was is the fingerprint of the base's value; empty if it had none.
	Was string `json:"was,omitempty"`
	// Needs are other values that must be unchanged for the change to be made.
	Needs []guard `json:"needs,omitempty"`

	base any
}

// guard is a value that must not have changed.
type guard struct {
	At path   `json:"at"`
	Is string `json:"is,omitempty"`
}

// listKeys holds, by path.fields, the lists whose elements are identified by keys (x-kubernetes-list-map-keys of a list of type map).
type listKeys map[string][]string

// differences returns the changes from base to wanted, in a fixed order. It compares lists as a whole unless they have keys and the same
// elements in the same order.
func (l listKeys) differences(base, wanted any, at path) []change {
	if equal(base, wanted) {
		return nil
	}
	baseMap, isMap := base.(map[string]any)
	wantedMap, areMaps := wanted.(map[string]any)
	if isMap && areMaps {
		return l.mapDifferences(baseMap, wantedMap, at)
	}
	baseElements, wantedElements, keyed := l.pair(base, wanted, at)
	if !keyed {
		return []change{{At: at, Set: wanted, Was: fingerprint(base), base: base}}
	}
	found := []change{}
	for index, element := range wantedElements {
		found = append(found, l.differences(baseElements[index], element, at.with(l.keysOf(element, at)))...)
	}
	return found
}

func (l listKeys) mapDifferences(base, wanted map[string]any, at path) []change {
	union := maps.Clone(base)
	maps.Copy(union, wanted)
	found := []change{}
	for _, name := range slices.Sorted(maps.Keys(union)) {
		before, had := base[name]
		after, has := wanted[name]
		switch below := at.with(name); {
		case had && has:
			found = append(found, l.differences(before, after, below)...)
		case has && len(at) == 0 && isFilled(after):
			// A section is not a value: its content is kept field by field, so that an edit of one field does not drop the others.
			found = append(found, change{At: below, Set: map[string]any{}})
			found = append(found, l.differences(map[string]any{}, after, below)...)
		case has:
			found = append(found, change{At: below, Set: after})
		case had:
			found = append(found, change{At: below, Remove: true, Was: fingerprint(before), base: before})
		}
	}
	return found
}

func isFilled(value any) bool {
	inner, isMap := value.(map[string]any)
	return isMap && len(inner) > 0
}

// isSection reports whether the change only makes a section.
func (c change) isSection() bool {
	inner, isMap := c.Set.(map[string]any)
	return len(c.At) == 1 && isMap && len(inner) == 0
}

// pair returns the elements of two lists if these have the same keys in the same order.
func (l listKeys) pair(base, wanted any, at path) (left, right []map[string]any, keyed bool) {
	left, leftIs := elements(base)
	right, rightIs := elements(wanted)
	if _, declared := l[at.fields()]; !declared || !leftIs || !rightIs || len(left) != len(right) {
		return nil, nil, false
	}
	seen := map[string]bool{}
	for index := range left {
		keys := l.keysOf(right[index], at)
		mark := fingerprint(keys)
		if keys == nil || seen[mark] || !equal(l.keysOf(left[index], at), keys) {
			return nil, nil, false
		}
		seen[mark] = true
	}
	return left, right, true
}

// keysOf returns the key values of an element of the list (a map[string]any in a path); nil if one is missing.
func (l listKeys) keysOf(element map[string]any, at path) map[string]any {
	keys := map[string]any{}
	for _, name := range l[at.fields()] {
		value, has := element[name]
		if !has {
			return nil
		}
		keys[name] = value
	}
	return keys
}

func elements(list any) ([]map[string]any, bool) {
	items, isList := list.([]any)
	if !isList {
		return nil, false
	}
	found := make([]map[string]any, 0, len(items))
	for _, item := range items {
		element, isMap := item.(map[string]any)
		if !isMap {
			return nil, false
		}
		found = append(found, element)
	}
	return found, true
}

// leaves returns the paths below at whose value is not a map, or an empty map.
func leaves(value any, at path) []path {
	inner, isMap := value.(map[string]any)
	if !isMap || len(inner) == 0 {
		return []path{at}
	}
	found := []path{}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		found = append(found, leaves(inner[name], at.with(name))...)
	}
	return found
}

// lookup returns the value at the path, and whether there is one.
func lookup(root any, at path) (any, bool) {
	value := root
	for _, step := range at {
		next, found := descend(value, step)
		if !found {
			return nil, false
		}
		value = next
	}
	return value, true
}

func descend(value, step any) (any, bool) {
	switch step := step.(type) {
	case string:
		inner, _ := value.(map[string]any)
		next, found := inner[step]
		return next, found
	case map[string]any:
		items, _ := value.([]any)
		for _, item := range items {
			if carries(item, step) {
				return item, true
			}
		}
	}
	return nil, false
}

func carries(item any, keys map[string]any) bool {
	element, isMap := item.(map[string]any)
	if !isMap || len(keys) == 0 {
		return false
	}
	for name, value := range keys {
		if found, has := element[name]; !has || !equal(found, value) {
			return false
		}
	}
	return true
}

// apply makes the change in the object, and reports whether it did. It does not if the surrounding fields are missing, or if the value is
// no longer what it was. It merges an added map with a map that is there meanwhile; the present values win.
func (c change) apply(object map[string]any) bool {
	if len(c.At) == 0 {
		return false
	}
	parent, found := lookup(object, c.At[:len(c.At)-1])
	name, isField := c.At[len(c.At)-1].(string)
	fields, isMap := parent.(map[string]any)
	if !found || !isField || !isMap {
		return false
	}
	present, has := fields[name]
	if c.Was == "" && has {
		return fill(present, c.Set)
	}
	if has != (c.Was != "") || has && fingerprint(present) != c.Was {
		return false
	}
	if c.Remove {
		delete(fields, name)
		return true
	}
	fields[name] = clone(c.Set)
	return true
}

// addSection adds the section (spec, status) of the change, if the converter left it out because it is empty, although the converted object
// has one. If a field further inside is missing, a client removed it.
func (c change) addSection(object, converted map[string]any) {
	section, isField := c.At[0].(string)
	if _, has := object[section]; has || !isField || len(c.At) != 2 || c.Remove {
		return
	}
	if _, meant := converted[section].(map[string]any); meant {
		object[section] = map[string]any{}
	}
}

// fill adds the values of more that are missing in present, and reports whether both are maps.
func fill(present, more any) bool {
	into, isMap := present.(map[string]any)
	from, areMaps := more.(map[string]any)
	if !isMap || !areMaps {
		return false
	}
	for name, value := range from {
		if _, has := into[name]; has {
			fill(into[name], value)
			continue
		}
		into[name] = clone(value)
	}
	return true
}

// revert undoes the change in an object that has it.
func (c change) revert(object map[string]any) {
	parent, _ := lookup(object, c.At[:len(c.At)-1])
	fields, isMap := parent.(map[string]any)
	name, isField := c.At[len(c.At)-1].(string)
	switch {
	case !isMap || !isField:
	case c.Was == "":
		delete(fields, name)
	default:
		fields[name] = clone(c.base)
	}
}

// setInBare puts the changed value into an object without the surrounding fields.
func (c change) setInBare(object map[string]any) {
	fields := c.addParents(object)
	if name, isField := c.At[len(c.At)-1].(string); isField && fields != nil && !c.Remove {
		fields[name] = clone(c.Set)
	}
}

// addParents adds the fields around the changed value, and returns the map that the value belongs in; nil if there is none.
func (c change) addParents(object map[string]any) map[string]any {
	fields := object
	for index, step := range c.At[:len(c.At)-1] {
		name, isField := step.(string)
		if !isField {
			continue // the element was made with its list
		}
		next, has := fields[name]
		keys, isElement := c.At[index+1].(map[string]any)
		switch {
		case isElement:
			items, _ := next.([]any)
			element, found := descend(items, keys)
			if !found {
				element = clone(keys)
				fields[name] = append(items, element)
			}
			fields, _ = element.(map[string]any)
		case has:
			fields, _ = next.(map[string]any)
		default:
			made := map[string]any{}
			fields[name], fields = made, made
		}
		if fields == nil {
			return nil
		}
	}
	return fields
}

// fingerprint distinguishes values. 64 bits are enough to find out whether one field of one object changed.
func fingerprint(value any) string {
	document, err := json.Marshal(value)
	if err != nil {
		return "?" // not a value of an API object; it equals no fingerprint
	}
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:8])
}

// equal compares values as JSON does, which has one kind of number.
func equal(left, right any) bool {
	switch left := left.(type) {
	case map[string]any:
		other, same := right.(map[string]any)
		return same && maps.EqualFunc(left, other, equal)
	case []any:
		other, same := right.([]any)
		return same && slices.EqualFunc(left, other, equal)
	case int64:
		if other, isFloat := right.(float64); isFloat {
			return float64(left) == other
		}
	case float64:
		if other, isInt := right.(int64); isInt {
			return left == float64(other)
		}
	}
	return reflect.DeepEqual(left, right)
}
