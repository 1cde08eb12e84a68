package objects

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mysql-operator/mysql-operator/crds"
)

// converter returns the object in another API version ("group/version").
type converter func(object *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error)

// examiner compares what two editions of a definition do to an object.
type examiner struct {
	existing, target edition
	// from is the version that objects are read in: the storage version if it is served.
	from    string
	convert converter
}

func newExaminer(existing, target *apiextensionsv1.CustomResourceDefinition, convert converter) (examiner, error) {
	has, err := newEdition(existing)
	if err != nil {
		return examiner{}, err
	}
	// The stored versions are those of the cluster's definition. Those of the target do not count.
	wanted := target.DeepCopy()
	wanted.Status.StoredVersions = existing.Status.StoredVersions
	wants, err := newEdition(wanted)
	if err != nil {
		return examiner{}, err
	}
	from, err := readable(has, existing)
	if err != nil {
		return examiner{}, err
	}
	made := examiner{existing: has, target: wants, from: from, convert: convert}
	if wants.webhook && convert == nil {
		if _, found := wants.versions[from]; !found {
			return examiner{}, fmt.Errorf("check objects of definition %s: they can be read in version %s, which the target does not have, "+
				"and nothing can convert them: set Convert", existing.Name, from)
		}
	}
	return made, nil
}

// readable returns the version to read objects in: the storage version if it is served, else another served version.
func readable(has edition, existing *apiextensionsv1.CustomResourceDefinition) (string, error) {
	if has.versions[has.storage].served {
		return has.storage, nil
	}
	served := slices.DeleteFunc(slices.Clone(has.order), func(name string) bool { return !has.versions[name].served })
	if len(served) == 0 {
		return "", fmt.Errorf("check objects of definition %s: it serves no version to read them in: serve version %s", existing.Name, has.storage)
	}
	for _, name := range served {
		if slices.Contains(existing.Status.StoredVersions, name) {
			return name, nil
		}
	}
	return served[0], nil
}

// examine finds what the object would lose under the target, and what would be refused. It may change the object.
func (e examiner) examine(ctx context.Context, object *unstructured.Unstructured) crds.Finding {
	object.SetManagedFields(nil) // they are not needed, and often larger than the rest of the object
	finding := crds.Finding{Namespace: object.GetNamespace(), Name: object.GetName()}
	for _, name := range e.target.order {
		if e.target.webhook && e.convert == nil && name != e.from {
			continue
		}
		lost, refused := e.compare(ctx, object, name)
		finding.Lost = append(finding.Lost, lost...)
		for _, one := range refused {
			finding.Invalid = append(finding.Invalid, one.Error())
		}
	}
	finding.Lost, finding.Invalid = details(finding.Lost), details(finding.Invalid)
	return finding
}

// compare finds what the object would newly lose, and be refused for, in one version of the target.
func (e examiner) compare(ctx context.Context, object *unstructured.Unstructured, name string) (lost []string, refused field.ErrorList) {
	seen := e.target.view(object, e.from, name, e.convert)
	if len(seen.lost) > 0 {
		before := e.existing.view(object, e.from, e.lossVersion(name), e.convert)
		lost = slices.DeleteFunc(seen.lost, func(path string) bool { return slices.Contains(before.lost, path) })
	}
	before, under := e.baseline(object, name), e.target.versions[name]
	readOnly := !under.served || seen.content == nil // no client writes in this version: the API server validates nothing
	refused = seen.refused
	if !readOnly {
		refused = append(refused, under.validate(ctx, seen.content)...)
	}
	if len(refused) > 0 {
		refused = added(seen.content, refused, before.validate(ctx))
	}
	if readOnly || slices.ContainsFunc(refused, blocksRules) {
		return lost, refused
	}
	if broken := under.evaluate(ctx, seen.content); len(broken) > 0 {
		refused = append(refused, added(seen.content, broken, before.evaluate(ctx))...)
	}
	return lost, refused
}

// lossVersion returns the version of the existing edition whose losses today compare with those in the named version of the target.
func (e examiner) lossVersion(name string) string {
	if name == e.target.storage && name != e.existing.storage {
		return e.from // objects were not stored in this version so far: the present content is what may be lost
	}
	return e.counterpart(name)
}

// counterpart returns the version of the existing edition to compare with: the same, or the one that objects are read in.
func (e examiner) counterpart(name string) string {
	if _, found := e.existing.versions[name]; !found || (e.existing.webhook && e.convert == nil) {
		return e.from
	}
	return name
}

// baseline is the object in the existing edition. It is computed only if there is something to compare.
type baseline struct {
	view    func() view
	version version
}

func (e examiner) baseline(object *unstructured.Unstructured, name string) baseline {
	name = e.counterpart(name)
	if !e.existing.versions[name].served {
		name = e.from
	}
	return baseline{version: e.existing.versions[name], view: func() view { return e.existing.view(object, e.from, name, e.convert) }}
}

func (b baseline) validate(ctx context.Context) field.ErrorList {
	seen := b.view()
	if seen.content == nil {
		return seen.refused
	}
	return append(seen.refused, b.version.validate(ctx, seen.content)...)
}

func (b baseline) evaluate(ctx context.Context) field.ErrorList {
	seen := b.view()
	if seen.content == nil {
		return nil
	}
	return b.version.evaluate(ctx, seen.content)
}

// view is an object as a client reads it, or sends it back, in some version.
type view struct {
	// content is nil if the object cannot be converted to that version.
	content map[string]any
	lost    []string
	refused field.ErrorList
}

// view converts an object that was read in one version to another, as the API server does with an object that is stored in the first.
func (e edition) view(object *unstructured.Unstructured, from, to string, convert converter) view {
	content := runtime.DeepCopyJSON(object.Object)
	seen := view{content: content}
	stored, found := e.versions[from]
	if found {
		seen.lost = stored.prune(content)
	}
	if to == from {
		seen.finish(stored)
		seen.lost = append(seen.lost, nullsLost("", object.Object, seen.content)...)
		return seen
	}
	if e.webhook && convert != nil {
		if found {
			lost, _ := stored.complete(content) // on a read the API server drops malformed parts, and refuses nothing
			seen.lost = append(append(seen.lost, lost...), nullsLost("", object.Object, content)...)
		}
		return seen.converted(convert, e.group+"/"+to, e.versions[to])
	}
	// Losses are counted before defaults are filled in: a default of one version that the other does not know is no loss.
	seen.content["apiVersion"] = e.group + "/" + to
	seen.lost = append(seen.lost, e.versions[to].prune(content)...)
	if found {
		lost, _ := stored.complete(content)
		seen.lost = append(seen.lost, lost...)
		e.versions[to].prune(content)
	}
	seen.finish(e.versions[to])
	seen.lost = append(seen.lost, nullsLost("", object.Object, seen.content)...)
	return seen
}

// converted continues with the result of the webhook.
func (v view) converted(convert converter, apiVersion string, to version) view {
	result, err := convert(&unstructured.Unstructured{Object: v.content}, apiVersion)
	if err != nil {
		wrong := field.InternalError(nil, fmt.Errorf("convert to %s: %w", apiVersion, err))
		return view{lost: v.lost, refused: append(v.refused, wrong)}
	}
	v.content = result.Object
	v.lost = append(v.lost, to.prune(v.content)...)
	v.finish(to)
	return v
}

func (v *view) finish(in version) {
	lost, refused := in.complete(v.content)
	v.lost = append(v.lost, lost...)
	v.refused = append(v.refused, refused...)
}

// nullsLost returns the paths of the nulls in before that are missing in after: dropped, or replaced by a default.
func nullsLost(path string, before, after any) []string {
	lost := []string{}
	switch before := before.(type) {
	case map[string]any:
		kept, whole := after.(map[string]any)
		if !whole {
			return nil // the whole map is gone, which is already counted
		}
		for _, name := range slices.Sorted(maps.Keys(before)) {
			item, found := kept[name]
			if before[name] == nil && !found {
				lost = append(lost, joinPath(path, name))
				continue
			}
			lost = append(lost, nullsLost(joinPath(path, name), before[name], item)...)
		}
	case []any:
		kept, _ := after.([]any)
		for at := range before {
			if at < len(kept) {
				lost = append(lost, nullsLost(fmt.Sprintf("%s[%d]", path, at), before[at], kept[at])...)
			}
		}
	case nil:
		if after != nil {
			lost = append(lost, path)
		}
	}
	return lost
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
