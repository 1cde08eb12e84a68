package migration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Needed says whether objects may be stored in another version than the one for storing: status.storedVersions names it. A definition
// that is being deleted needs nothing, its objects go with it.
func Needed(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return definition.DeletionTimestamp == nil && len(formerVersions(definition)) > 0
}

// formerVersions are the versions, other than the one for storing, that objects may be stored in.
func formerVersions(definition *apiextensionsv1.CustomResourceDefinition) []string {
	former := slices.Clone(definition.Status.StoredVersions)
	return slices.DeleteFunc(former, func(version string) bool { return version == storageVersion(definition) })
}

// storageVersion is the version objects are stored in; the API server sees to it that there is exactly one.
func storageVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// resourceOf is where the objects are read and written: in the version for storing, where nothing has to be converted, or else in one
// that is served.
func resourceOf(definition *apiextensionsv1.CustomResourceDefinition) (apischema.GroupVersionResource, error) {
	resource := apischema.GroupVersionResource{Group: definition.Spec.Group, Resource: definition.Spec.Names.Plural}
	for _, version := range definition.Spec.Versions {
		if version.Served && (version.Storage || resource.Version == "") {
			resource.Version = version.Name
		}
	}
	if resource.Version == "" {
		return resource, fmt.Errorf("rewrite objects of definition %s: it serves no version: nobody can read or write them until one is served", definition.Name)
	}
	return resource, nil
}

// identity is what must stay the same from the beginning of a migration to its end, for what was rewritten to be what is stored. Every
// change of spec raises the generation.
type identity struct {
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	Storage    string    `json:"storage"`
}

func identityOf(definition *apiextensionsv1.CustomResourceDefinition) identity {
	return identity{UID: definition.UID, Generation: definition.Generation, Storage: storageVersion(definition)}
}

// cursor is how far a migration has come. It is kept in an annotation of the definition.
type cursor struct {
	identity
	// After is the last object done, as keyOf has it. All that come before it in the API server's order are done, too.
	After string `json:"after"`
}

// keyOf tells an object's place in the API server's order, which is that of these strings' bytes.
func keyOf(object *metav1.PartialObjectMetadata) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.Namespace + "/" + object.Name
}

// resume returns the key to go on behind; empty if there is nothing to go on from: no cursor, one that nobody can read, or one of another
// definition, generation or version for storing.
func resume(annotation string, now identity) string {
	var found cursor
	if err := json.Unmarshal([]byte(annotation), &found); err != nil || found.identity != now {
		return ""
	}
	return found.After
}

func (c cursor) String() string {
	document, err := json.Marshal(c)
	if err != nil {
		return "" // strings and a number always have a JSON form; without a cursor the next run begins at the beginning
	}
	return string(document)
}

// difference says in words how a definition changed; empty if it is the same.
func (i identity) difference(now identity) string {
	parts := []string{}
	if i.UID != now.UID {
		parts = append(parts, "it was deleted and made anew")
	}
	if i.Storage != now.Storage {
		parts = append(parts, fmt.Sprintf("it stores in %s, no longer in %s", now.Storage, i.Storage))
	}
	if i.Generation != now.Generation {
		parts = append(parts, fmt.Sprintf("its generation is %d, no longer %d", now.Generation, i.Generation))
	}
	return strings.Join(parts, ", ")
}
