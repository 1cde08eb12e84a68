package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	fieldAPIVersion  = "apiVersion"
	fieldKind        = "kind"
	fieldMetadata    = "metadata"
	fieldLabels      = "labels"
	fieldAnnotations = "annotations"
)

// Func converts the content of an object from one version to another. It gets a copy that it may change and return.
//
// It must be pure, and total: one object that it refuses makes every list of the kind fail. It need not handle apiVersion, nor fields that
// the other version cannot express: the Registry keeps those. Nor need it handle metadata. Labels and annotations are kept unless the
// result has a metadata of its own; the rest of metadata is always kept.
type Func func(object map[string]any) (map[string]any, error)

// Typed makes a Func from a function on Go types with json tags. The Registry keeps fields that From does not have, like those that To
// cannot express. Mark optional fields of To omitempty or omitzero, because users see what it encodes.
func Typed[From, To any](convert func(From) (To, error)) Func {
	return func(object map[string]any) (map[string]any, error) {
		document, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		var from From
		if err := utiljson.Unmarshal(document, &from); err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		to, err := convert(from)
		if err != nil {
			return nil, err
		}
		if document, err = json.Marshal(to); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		result := map[string]any{}
		if err := utiljson.Unmarshal(document, &result); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		return result, nil
	}
}

// Spoke is a version other than the hub.
type Spoke struct {
	// Version is its name, as in the definition: "v1".
	Version string
	// ToHub and FromHub convert between it and the hub.
	ToHub, FromHub Func
}

// Kind holds the versions of one kind. Each converts to and from the hub, and so to every other.
type Kind struct {
	schema.GroupKind
	// Hub names the version that all others convert through, preferably the one that can express most. It need not be the stored one.
	Hub    string
	Spokes []Spoke
	// ListKeys names lists whose elements are identified by keys, as in x-kubernetes-list-map-keys, for every version: "spec.hosts" to
	// "name", "status.nodes.disks" to "device". For these lists, what a version cannot express about an element is kept for the element.
	// For other lists, it is kept until a client changes the list.
	ListKeys map[string][]string
}

// Registry converts objects between the versions of their kinds. It is immutable.
type Registry struct {
	annotation string
	kinds      map[schema.GroupKind]kind
}

type kind struct {
	hub    string
	spokes map[string]Spoke
	keys   listKeys
	group  string
}

// NewRegistry returns a registry of the kinds. domain is the prefix of the annotation that carries what a version cannot express,
// DOMAIN/kept-for-conversion. An error means a mistake in the program.
func NewRegistry(domain string, kinds ...Kind) (*Registry, error) {
	registry := &Registry{annotation: domain + "/kept-for-conversion", kinds: map[schema.GroupKind]kind{}}
	for _, given := range kinds {
		if _, twice := registry.kinds[given.GroupKind]; twice {
			return nil, fmt.Errorf("register %s: the kind is given twice", given.GroupKind)
		}
		made := kind{hub: given.Hub, spokes: map[string]Spoke{}, keys: given.ListKeys, group: given.Group}
		for _, spoke := range given.Spokes {
			if made.knows(spoke.Version) {
				return nil, fmt.Errorf("register %s: version %q is given twice", given.GroupKind, spoke.Version)
			}
			if spoke.Version == "" || spoke.ToHub == nil || spoke.FromHub == nil {
				return nil, fmt.Errorf("register %s: version %q has no name, no ToHub or no FromHub", given.GroupKind, spoke.Version)
			}
			made.spokes[spoke.Version] = spoke
		}
		if given.Hub == "" || len(made.spokes) == 0 {
			return nil, fmt.Errorf("register %s: it needs a hub and at least one other version", given.GroupKind)
		}
		registry.kinds[given.GroupKind] = made
	}
	return registry, nil
}

func (k kind) knows(version string) bool {
	_, isSpoke := k.spokes[version]
	return isSpoke || version == k.hub
}

// Versions returns the versions of a kind that can be converted to each other, sorted; none for a kind that is not registered.
func (r *Registry) Versions(of schema.GroupKind) []string {
	known, found := r.kinds[of]
	if !found {
		return nil
	}
	versions := append(slices.Collect(maps.Keys(known.spokes)), known.hub)
	slices.Sort(versions)
	return versions
}

// ErrUnknown is wrapped in errors about kinds and versions that are not in the registry.
var ErrUnknown = errors.New("this operator does not convert it")

// Convert returns the object in another API version, given as "group/version". Nothing is lost: an annotation keeps what the version cannot
// express. What the annotation holds for the version is restored, unless the object was changed in a way that contradicts it. Convert does
// not change its argument. Errors name the object.
func (r *Registry) Convert(object *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
	to, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("convert %s: read the requested API version: %w", describe(object), err)
	}
	from := object.GroupVersionKind()
	known, found := r.kinds[from.GroupKind()]
	switch {
	case !found:
		return nil, fmt.Errorf("convert %s: kind %q of group %q: %w", describe(object), from.Kind, from.Group, ErrUnknown)
	case to.Group != from.Group || !known.knows(to.Version):
		return nil, fmt.Errorf("convert %s: to %s: %w", describe(object), apiVersion, ErrUnknown)
	case !known.knows(from.Version):
		return nil, fmt.Errorf("convert %s: from %s: %w", describe(object), from.GroupVersion(), ErrUnknown)
	case to.Version == from.Version:
		return object.DeepCopy(), nil
	}
	converted, err := r.convert(known, object.DeepCopy().Object, from.Version, to.Version)
	if err != nil {
		return nil, fmt.Errorf("convert %s: to %s: %w", describe(object), apiVersion, err)
	}
	return &unstructured.Unstructured{Object: converted}, nil
}

func describe(object *unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return fmt.Sprintf("%s %s of %s", object.GetKind(), name, object.GetAPIVersion())
}

// plain converts without the kept changes: through the hub, with the object's metadata.
func (k kind) plain(object map[string]any, from, to string) (map[string]any, error) {
	if from == to {
		return clone(object), nil
	}
	if spoke, isSpoke := k.spokes[from]; isSpoke {
		converted, err := k.step(object, spoke.ToHub, k.hub)
		if err != nil {
			return nil, err
		}
		object = converted
	}
	if spoke, isSpoke := k.spokes[to]; isSpoke {
		return k.step(object, spoke.FromHub, to)
	}
	return object, nil
}

func (k kind) step(object map[string]any, convert Func, version string) (map[string]any, error) {
	converted, err := convert(clone(object))
	if err != nil {
		return nil, err
	}
	if converted == nil {
		return nil, errors.New("the converter returned nothing")
	}
	result := maps.Clone(converted)
	result[fieldAPIVersion] = schema.GroupVersion{Group: k.group, Version: version}.String()
	result[fieldKind] = object[fieldKind]
	result[fieldMetadata] = keepMetadata(object[fieldMetadata], converted[fieldMetadata])
	return result, nil
}

// keepMetadata returns the former metadata. If the converter returned metadata, its labels and annotations replace the former ones: only
// these may be converted
// (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#response).
func keepMetadata(before, after any) map[string]any {
	kept, _ := clone(before).(map[string]any)
	if kept == nil {
		kept = map[string]any{}
	}
	said, _ := after.(map[string]any)
	if len(said) == 0 {
		return kept
	}
	for _, name := range []string{fieldLabels, fieldAnnotations} {
		delete(kept, name)
		if values, _ := said[name].(map[string]any); len(values) > 0 {
			kept[name] = values
		}
	}
	return kept
}

// clone copies a JSON value.
func clone[T any](value T) T {
	copied, _ := runtime.DeepCopyJSONValue(value).(T)
	return copied
}
