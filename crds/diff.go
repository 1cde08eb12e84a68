package crds

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/strings"
)

// maxShown is how much of a value Diff shows.
const maxShown = 80

// Diff returns what applying the target would change in the existing definition (nil if none), one line for each change, for people to
// read: "+ path: value", "- path: value" or "~ path: before → after". It does not show labels and annotations of others, which stay as they
// are.
func Diff(existing, target *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	wants, err := content(target, target)
	if err != nil {
		return nil, err
	}
	has := map[string]any{}
	if existing != nil {
		if has, err = content(existing, target); err != nil {
			return nil, err
		}
	}
	return diffMaps("", has, wants), nil
}

// content returns the part of a definition that an apply of the target sets.
func content(object, target *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	spec := object.Spec.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(spec)
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("compare definition %s: %w", object.Name, err)
	}
	return map[string]any{"spec": whole, "labels": ofTarget(object.Labels, target.Labels), "annotations": ofTarget(object.Annotations, target.Annotations)}, nil
}

func ofTarget(has, wants map[string]string) map[string]any {
	result := map[string]any{}
	for name := range wants {
		if value, found := has[name]; found {
			result[name] = value
		}
	}
	return result
}

func diffMaps(path string, has, wants map[string]any) []string {
	lines := []string{}
	names := maps.Clone(has)
	maps.Copy(names, wants)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, had := has[name]
		after, will := wants[name]
		at := name
		if path != "" {
			at = path + "." + name
		}
		switch {
		case !had:
			lines = append(lines, "+ "+at+": "+shown(after))
		case !will:
			lines = append(lines, "- "+at+": "+shown(before))
		default:
			lines = append(lines, diffValues(at, before, after)...)
		}
	}
	return lines
}

func diffValues(path string, before, after any) []string {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	has, wereFields := before.(map[string]any)
	wants, areFields := after.(map[string]any)
	if wereFields && areFields {
		return diffMaps(path, has, wants)
	}
	if has, wants := byName(before), byName(after); has != nil && wants != nil {
		if lines := diffMaps(path, has, wants); len(lines) > 0 {
			return lines
		}
		return []string{"~ " + path + ": in another order"}
	}
	return []string{fmt.Sprintf("~ %s: %s → %s", path, shown(before), shown(after))}
}

// byName returns a list as a map if all its items have distinct names; nil otherwise.
func byName(value any) map[string]any {
	list, isList := value.([]any)
	named := map[string]any{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		if _, twice := named[name]; name == "" || twice {
			return nil
		}
		named[name] = item
	}
	if !isList {
		return nil
	}
	return named
}

func shown(value any) string {
	document, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(document) <= maxShown {
		return string(document)
	}
	return strings.ShortenString(string(document), maxShown) + "…"
}
