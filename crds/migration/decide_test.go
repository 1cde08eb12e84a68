package migration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// definitionOf returns a definition with versions, each followed by its mark: "served", "storage", "both" or nothing.
func definitionOf(stored []string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	definition.Spec.Group, definition.Spec.Names.Plural = group, plural
	definition.Status.StoredVersions = stored
	for i := 0; i < len(versions); i += 2 {
		marks := versions[i+1]
		definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: versions[i], Served: marks == "served" || marks == "both", Storage: marks == "storage" || marks == "both",
		})
	}
	return definition
}

func TestNeeded(t *testing.T) {
	t.Parallel()
	deleted := definitionOf([]string{"v1", "v2"}, "v1", "", "v2", "both")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for story, test := range map[string]struct {
		definition *apiextensionsv1.CustomResourceDefinition
		want       bool
	}{
		"stored in the storage version only": {definitionOf([]string{"v2"}, "v1", "served", "v2", "both"), false},
		"stored in a former version, too":    {definitionOf([]string{"v1", "v2"}, "v1", "served", "v2", "both"), true},
		"stored in a former version only":    {definitionOf([]string{"v1"}, "v1", "", "v2", "both"), true},
		"new, nothing is known yet":          {definitionOf(nil, "v1", "both"), false},
		"being deleted":                      {deleted, false},
	} {
		if got := Needed(test.definition); got != test.want {
			t.Errorf("%s: %v", story, got)
		}
	}
}

func TestResourceOf(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		definition *apiextensionsv1.CustomResourceDefinition
		want       string
	}{
		"the storage version":                    {definitionOf(nil, "v1", "served", "v2", "both"), "v2"},
		"the storage version, if it comes first": {definitionOf(nil, "v2", "both", "v1", "served"), "v2"},
		"a served one, if that is not served":    {definitionOf(nil, "v0", "", "v1", "served", "v2", "storage"), "v1"},
	} {
		if got, err := resourceOf(test.definition); got.Version != test.want || err != nil {
			t.Errorf("%s: %s, error %v", story, got.Version, err)
		}
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	now := identity{UID: "u", Generation: 3, Storage: "v2"}
	for story, test := range map[string]struct {
		annotation, want string
	}{
		"continues after the cursor": {cursor{now, "ns/object"}.String(), "ns/object"},
		"there is none":              {"", ""},
		"it is malformed":            {"ns/object", ""},
		"of another definition":      {cursor{identity{"other", 3, "v2"}, "ns/object"}.String(), ""},
		"of another generation":      {cursor{identity{"u", 2, "v2"}, "ns/object"}.String(), ""},
		"of another storage version": {cursor{identity{"u", 3, "v1"}, "ns/object"}.String(), ""},
	} {
		if got := resume(test.annotation, now); got != test.want {
			t.Errorf("%s: %q from %s", story, got, test.annotation)
		}
	}
}

func TestTranslation(t *testing.T) {
	t.Parallel()
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	ofStatus := func(entry metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
		entry.Subresource = "status"
		return entry
	}
	at := func(second int64, entry metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
		entry.Time = &metav1.Time{Time: time.Unix(second, 0)}
		return entry
	}
	for story, test := range map[string]struct {
		webhook   bool
		has, want []metav1.ManagedFieldsEntry // want nil: no change
	}{
		"no entries at all": {},
		"versions that are served stay": {
			has: []metav1.ManagedFieldsEntry{entry("a", apply, "v2", `{"f:a":{}}`), entry("b", update, "v3", `{"f:b":{}}`)},
		},
		"unserved and gone ones are renamed": {
			has:  []metav1.ManagedFieldsEntry{entry("a", apply, "v1", `{"f:a":{}}`), at(1, entry("b", update, "v0", `{"f:b":{}}`))},
			want: []metav1.ManagedFieldsEntry{entry("a", apply, "v3", `{"f:a":{}}`), at(1, entry("b", update, "v3", `{"f:b":{}}`))},
		},
		"two of one manager become one, with the later time": {
			has: []metav1.ManagedFieldsEntry{
				at(7, entry("a", update, "v1", `{"f:a":{},"f:l":{"k:{\"n\":1}":{"f:x":{}}}}`)), at(9, entry("a", update, "v3", `{"f:b":{},"f:l":{"k:{\"n\":1}":{"f:y":{}}}}`)),
			},
			want: []metav1.ManagedFieldsEntry{at(9, entry("a", update, "v3", `{"f:a":{},"f:b":{},"f:l":{"k:{\"n\":1}":{"f:x":{},"f:y":{}}}}`))},
		},
		"different operations and subresources stay apart": {
			has: []metav1.ManagedFieldsEntry{
				entry("a", apply, "v1", `{"f:a":{}}`), entry("a", update, "v3", `{"f:b":{}}`), ofStatus(entry("a", update, "v3", `{"f:c":{}}`)),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("a", apply, "v3", `{"f:a":{}}`), entry("a", update, "v3", `{"f:b":{}}`), ofStatus(entry("a", update, "v3", `{"f:c":{}}`)),
			},
		},
		"with a webhook they are dropped": {
			webhook: true,
			has:     []metav1.ManagedFieldsEntry{entry("a", apply, "v1", `{"f:a":{}}`), entry("b", update, "v3", `{"f:b":{}}`)},
			want:    []metav1.ManagedFieldsEntry{entry("b", update, "v3", `{"f:b":{}}`)},
		},
		"if none is left, one entry owns only the name": {
			webhook: true,
			has:     []metav1.ManagedFieldsEntry{entry("a", apply, "v1", `{"f:a":{}}`)},
			want:    []metav1.ManagedFieldsEntry{entry("migrator", apply, "v3", `{"f:metadata":{"f:name":{}}}`)},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			definition := definitionOf(nil, "v1", "", "v2", "served", "v3", "storage")
			if test.webhook {
				definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
			}
			got, changed, err := translationFor(definition, "migrator").apply(test.has)
			if err != nil || changed != (test.want != nil) {
				t.Fatalf("changed %v, error %v", changed, err)
			}
			if diff := cmp.Diff(test.want, got, equalFields()); changed && diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{plural}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{name}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions/status"}, ResourceNames: []string{name}, Verbs: []string{"patch"}},
	}
	if diff := cmp.Diff(want, Rules([]*apiextensionsv1.CustomResourceDefinition{definitionOf(nil)})); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if rules := Rules(nil); rules != nil {
		t.Errorf("for no definition: %v", rules)
	}
}
