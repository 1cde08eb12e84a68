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

// Needed reports whether objects may be stored in another version than the storage version, according to status.storedVersions. It is false
// for a definition that is being deleted, because its objects are deleted too.
func Needed(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return definition.DeletionTimestamp == nil && len(formerVersions(definition)) > 0
}

// formerVersions returns the versions, other than the storage version, that objects may be stored in.
func formerVersions(definition *apiextensionsv1.CustomResourceDefinition) []string {
	former := slices.Clone(definition.Status.StoredVersions)
	return slices.DeleteFunc(former, func(version string) bool { return version == storageVersion(definition) })
}

// storageVersion returns the version that objects are stored in. The API server ensures that there is exactly one.
func storageVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// resourceOf returns the resource to read and write objects in. Its version is the storage version, which needs no conversion, or else
// another served version.
func resourceOf(definition *apiextensionsv1.CustomResourceDefinition) (apischema.GroupVersionResource, error) {
	resource := apischema.GroupVersionResource{Group: definition.Spec.Group, Resource: definition.Spec.Names.Plural}
	for _, version := range definition.Spec.Versions {
		if version.Served && (version.Storage || resource.Version == "") {
			resource.Version = version.Name
		}
	}
	if resource.Version == "" {
		return resource, fmt.Errorf("rewrite objects of definition %s: it serves no version: serve a version, so that clients can read and write them", definition.Name)
	}
	return resource, nil
}

// identity must stay the same from the beginning of a migration to its end. Otherwise the rewritten objects may be stored in another
// version. Every change of spec raises the generation.
type identity struct {
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	Storage    string    `json:"storage"`
}

func identityOf(definition *apiextensionsv1.CustomResourceDefinition) identity {
	return identity{UID: definition.UID, Generation: definition.Generation, Storage: storageVersion(definition)}
}

// cursor is the progress of a migration. An annotation of the definition holds it.
type cursor struct {
	identity
	// After is the key (keyOf) of the last object that is done. All objects before it in the API server's order are done, too.
	After string `json:"after"`
}

// keyOf returns the sort key of an object. The API server lists objects in the byte order of these keys.
func keyOf(object *metav1.PartialObjectMetadata) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.Namespace + "/" + object.Name
}

// resume returns the key to continue after; empty if there is no cursor, if it is malformed, or if it is of another definition, generation
// or storage version.
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
		return "" // strings and a number always have a JSON form; without a cursor the next run would start at the beginning
	}
	return string(document)
}

// difference describes how a definition changed; empty if it did not.
func (i identity) difference(now identity) string {
	parts := []string{}
	if i.UID != now.UID {
		parts = append(parts, "it was deleted and created again")
	}
	if i.Storage != now.Storage {
		parts = append(parts, fmt.Sprintf("its storage version is %s, no longer %s", now.Storage, i.Storage))
	}
	if i.Generation != now.Generation {
		parts = append(parts, fmt.Sprintf("its generation is %d, no longer %d", now.Generation, i.Generation))
	}
	return strings.Join(parts, ", ")
}
