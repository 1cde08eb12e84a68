package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The registry finds out what a version cannot express. An object x of version A becomes y = f(x) in version B, and g converts back. The
// changes from g(y) to x are what y does not express. The registry keeps them in an annotation of y, and makes them again on the way back.
// It makes a change only
//
//   - if g(y) still has the value it had (the user's own edit wins),
//   - if the other values in y that depended on the value are unchanged (for fields that express the same in two ways, one unknown to B),
//   - if f of the result agrees with y: a kept change never contradicts version B, whoever wrote the annotation.

// maxAnnotations is the limit for all annotations of an object together, including names (apimachinery's TotalAnnotationSizeLimitB).
const maxAnnotations = 256 << 10

// maxTied is the number of changes up to which the dependent values of each change are found. Above it, all changes share the same.
const maxTied = 64

// kept is the content of the annotation for one version.
type kept struct {
	// In is the version of the object that holds the annotation.
	In      string   `json:"in"`
	Changes []change `json:"changes"`
}

// convert converts an object, which it may change, and keeps what the version cannot express. From one spoke to another it stops at the
// hub, so that it also keeps for the hub what the hub can express and the second spoke cannot.
func (r *Registry) convert(k kind, object map[string]any, from, to string) (map[string]any, error) {
	if from == k.hub || to == k.hub {
		return r.convertLeg(k, object, from, to)
	}
	object, err := r.convertLeg(k, object, from, k.hub)
	if err != nil {
		return nil, err
	}
	return r.convertLeg(k, object, k.hub, to)
}

func (r *Registry) convertLeg(k kind, object map[string]any, from, to string) (map[string]any, error) {
	entries := r.takeKept(object)
	delete(entries, from)
	result, err := k.restore(object, from, to, entries[to])
	if err != nil {
		return nil, err
	}
	delete(entries, to)

	entries[from] = kept{}
	remaining := map[string]kept{}
	for version, entry := range entries {
		if !k.knows(version) {
			remaining[version] = entry // it belongs to a newer operator, which may run again
			continue
		}
		original, err := k.restore(object, from, version, entry)
		if err != nil {
			return nil, err
		}
		changes, err := k.lostChanges(original, version, result, to)
		if err != nil {
			return nil, err
		}
		if len(changes) > 0 {
			remaining[version] = kept{In: to, Changes: changes}
		}
	}
	return result, r.putKept(result, remaining)
}

// restore converts the object, and makes the changes that were kept for the version.
func (k kind) restore(object map[string]any, from, to string, entry kept) (map[string]any, error) {
	plain, err := k.plain(object, from, to)
	if err != nil || len(entry.Changes) == 0 || from == to {
		return plain, err
	}
	says, err := k.plain(plain, to, from)
	if err != nil {
		return nil, fmt.Errorf("and back to %s: %w", from, err)
	}
	agrees := func(candidate map[string]any) bool {
		said, err := k.plain(candidate, to, from)
		return err == nil && k.agree(said, says, object)
	}
	useful := slices.DeleteFunc(slices.Clone(entry.Changes), func(c change) bool { return !c.useful(object, entry.In == from) })
	restored := clone(plain)
	for _, change := range useful {
		change.addSection(restored, object)
		change.apply(restored)
	}
	if agrees(restored) {
		return restored, nil
	}
	restored = plain
	for _, change := range useful {
		candidate := clone(restored)
		change.addSection(candidate, object)
		if change.apply(candidate) && agrees(candidate) {
			restored = candidate
		}
	}
	return restored, nil
}

// agree reports whether said, converted with kept changes, differs from without, converted without them, only where it equals the object.
func (k kind) agree(said, without, object map[string]any) bool {
	for _, at := range k.touched(without, said) {
		value, has := lookup(said, at)
		given, isGiven := lookup(object, at)
		if has != isGiven {
			return false
		}
		inner, isMap := value.(map[string]any)
		_, areMaps := given.(map[string]any)
		if has && !equal(value, given) && (!isMap || !areMaps || len(inner) > 0) {
			return false
		}
	}
	return true
}

// useful reports whether a change may be made: it is about fields that converters may change, and the values in Needs are unchanged.
func (c change) useful(object map[string]any, sameVersion bool) bool {
	if len(c.Needs) > 0 && !sameVersion || !convertible(c.At) {
		return false
	}
	for _, need := range c.Needs {
		if value, found := lookup(object, need.At); found != (need.Is != "") || found && fingerprint(value) != need.Is {
			return false
		}
	}
	return true
}

func convertible(at path) bool {
	if len(at) == 0 || at[0] == fieldAPIVersion || at[0] == fieldKind {
		return false
	}
	return at[0] != fieldMetadata || len(at) == 3 && (at[1] == fieldLabels || at[1] == fieldAnnotations)
}

// lostChanges returns the changes from the result, converted back, to the original.
func (k kind) lostChanges(original map[string]any, version string, result map[string]any, in string) ([]change, error) {
	back, err := k.plain(result, in, version)
	if err != nil {
		return nil, fmt.Errorf("and back to %s: %w", version, err)
	}
	changes := k.keys.differences(content(back), content(original), nil)
	if len(changes) == 0 {
		return nil, nil
	}
	all := k.dependents(original, version, result, in, changes)
	if len(all) == 0 {
		return changes, nil
	}
	for index := range changes {
		changes[index].Needs = all
		if len(changes) <= maxTied {
			changes[index].Needs = k.dependents(original, version, result, in, changes[index:index+1])
		}
	}
	return changes, nil
}

// dependents returns the values in the result that depend on the changed values: those that differ without them, and those that the changed
// values produce in an otherwise empty object.
func (k kind) dependents(original map[string]any, version string, result map[string]any, in string, changes []change) []guard {
	without, alone, nothing := clone(original), withoutContent(original), withoutContent(original)
	for _, change := range changes {
		change.revert(without)
		change.setInBare(alone)
		change.addParents(nothing)
	}
	found := map[string]guard{}
	for _, pair := range [][2]map[string]any{{original, without}, {nothing, alone}} {
		left, err := k.plain(pair[0], version, in)
		if err != nil {
			continue // a partial object may be invalid; then the other pair gives the answer
		}
		right, err := k.plain(pair[1], version, in)
		if err != nil {
			continue
		}
		for _, at := range k.touched(left, right) {
			need := guard{At: at}
			if value, has := lookup(result, at); has {
				need.Is = fingerprint(value)
			}
			found[fingerprint(at)] = need
		}
	}
	guards := make([]guard, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		guards = append(guards, found[name])
	}
	return guards
}

// touched returns the paths of the smallest values that differ.
func (k kind) touched(left, right map[string]any) []path {
	paths := []path{}
	for _, change := range k.keys.differences(content(left), content(right), nil) {
		if change.isSection() {
			continue
		}
		value := change.Set
		if change.Remove {
			value = change.base
		}
		if change.Was != "" && !change.Remove {
			paths = append(paths, change.At)
			continue
		}
		paths = append(paths, leaves(value, change.At)...)
	}
	return paths
}

// content returns the part of an object that converters may change. Labels and annotations are always maps.
func content(object map[string]any) map[string]any {
	view := maps.Clone(object)
	delete(view, fieldAPIVersion)
	delete(view, fieldKind)
	metadata, _ := object[fieldMetadata].(map[string]any)
	inner := map[string]any{}
	for _, name := range []string{fieldLabels, fieldAnnotations} {
		values, _ := metadata[name].(map[string]any)
		inner[name] = values
	}
	view[fieldMetadata] = inner
	return view
}

// withoutContent returns the object without content.
func withoutContent(object map[string]any) map[string]any {
	return map[string]any{fieldAPIVersion: object[fieldAPIVersion], fieldKind: object[fieldKind], fieldMetadata: map[string]any{fieldLabels: map[string]any{}, fieldAnnotations: map[string]any{}}}
}

// takeKept removes our annotation from the object and returns its content. A damaged annotation counts as empty: a refusal would make every
// list of the kind fail.
func (r *Registry) takeKept(object map[string]any) map[string]kept {
	entries := map[string]kept{}
	metadata, _ := object[fieldMetadata].(map[string]any)
	annotations, _ := metadata[fieldAnnotations].(map[string]any)
	document, found := annotations[r.annotation].(string)
	if !found {
		return entries
	}
	delete(annotations, r.annotation)
	if len(annotations) == 0 {
		delete(metadata, fieldAnnotations)
	}
	if err := utiljson.Unmarshal([]byte(document), &entries); err != nil || entries == nil {
		return map[string]kept{}
	}
	return entries
}

func (r *Registry) putKept(object map[string]any, entries map[string]kept) error {
	if len(entries) == 0 {
		return nil
	}
	document, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("keep in an annotation what the version cannot express: %w", err)
	}
	metadata, _ := object[fieldMetadata].(map[string]any)
	annotations, _ := metadata[fieldAnnotations].(map[string]any)
	size := len(r.annotation) + len(document)
	for name, value := range annotations {
		text, _ := value.(string)
		size += len(name) + len(text)
	}
	if size > maxAnnotations {
		return fmt.Errorf("metadata.annotations[%q]: %d bytes are needed to keep what the version cannot express, and all annotations together "+
			"would have %d bytes of at most %d: use the object in the version it was written in, or make it smaller", r.annotation, len(document), size, maxAnnotations)
	}
	if annotations == nil {
		annotations = map[string]any{}
		metadata[fieldAnnotations] = annotations
	}
	annotations[r.annotation] = string(document)
	return nil
}
