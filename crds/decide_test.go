package crds

import (
	"os"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// us identifies the program that the definitions of the tests belong to.
var us = Identity{Owner: "widget-operator", Domain: "example.com"} //nolint:gochecknoglobals // a constant, but Go has none of structs

func widgets(t *testing.T) string {
	t.Helper()
	document, err := os.ReadFile("testdata/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// ours is this operator's definition in the tests, in its fifth edition.
func ours(t *testing.T) Definition {
	t.Helper()
	definition, err := us.Parse([]byte(widgets(t)), "v1")
	if err != nil {
		t.Fatal(err)
	}
	return definition
}

// change makes one difference in the cluster's definition.
type change func(*apiextensionsv1.CustomResourceDefinition)

func order(text string) change {
	return func(object *apiextensionsv1.CustomResourceDefinition) {
		object.Annotations[us.VersionAnnotation()] = text
	}
}

func foreign(object *apiextensionsv1.CustomResourceDefinition) {
	object.Labels[OwnerLabel] = "Helm"
}

func unmarked(object *apiextensionsv1.CustomResourceDefinition) {
	object.Labels, object.Annotations = nil, nil
}

func otherHash(object *apiextensionsv1.CustomResourceDefinition) {
	object.Annotations[us.HashAnnotation()] = "0"
}

func edited(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Names.ShortNames = []string{"edited"}
}

func unserved(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].Served = false
}

func withoutField(object *apiextensionsv1.CustomResourceDefinition) {
	delete(object.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties, "epoch")
}

func withField(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["invented"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
}

func withoutStatus(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Versions[0].Subresources = nil
}

func anyFields(object *apiextensionsv1.CustomResourceDefinition) {
	preserve := true
	object.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
}

func clusterScoped(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Scope = apiextensionsv1.ClusterScoped
}

func otherKind(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Names.Kind = "Gadget"
}

func storedIn(versions ...string) change {
	return func(object *apiextensionsv1.CustomResourceDefinition) { object.Status.StoredVersions = versions }
}

func defining(version string) change {
	return func(object *apiextensionsv1.CustomResourceDefinition) {
		added := *object.Spec.Versions[0].DeepCopy()
		added.Name, added.Served, added.Storage = version, true, false
		object.Spec.Versions = append(object.Spec.Versions, added)
	}
}

func beingDeleted(object *apiextensionsv1.CustomResourceDefinition) {
	now := metav1.NewTime(time.Unix(1, 0))
	object.DeletionTimestamp = &now
}

func serverFilled(object *apiextensionsv1.CustomResourceDefinition) {
	object.Annotations["someone.example.com/note"] = "theirs"
	object.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	object.Generation, object.ManagedFields = 3, []metav1.ManagedFieldsEntry{{Manager: us.FieldManager()}}
}

// asApplied turns the changes before it from an edit into an applied definition.
func asApplied(object *apiextensionsv1.CustomResourceDefinition) { _ = us.stamp(object) }

func byHelm(object *apiextensionsv1.CustomResourceDefinition) {
	object.Labels[OwnerLabel] = "Helm"
	object.Annotations["meta.helm.sh/release-name"], object.Annotations["meta.helm.sh/release-namespace"] = "widgets", "shop"
}

func converted(object *apiextensionsv1.CustomResourceDefinition) {
	object.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
}

func narrower(object *apiextensionsv1.CustomResourceDefinition) {
	withField(object)
	order("4")(object)
	asApplied(object)
}

// TestDecide is the specification: the cluster's definition (ours with these changes) → what the program does about it, and why.
func TestDecide(t *testing.T) {
	t.Parallel()
	running := Situation{Running: true}
	type changes = []change
	for story, test := range map[string]struct {
		there  changes
		when   Situation
		action Action
		reason Reason
		says   string
	}{
		"as we left it": {action: Keep, reason: ReasonUnchanged},
		"as we left it, with what others and the server add": {there: changes{serverFilled}, action: Keep, reason: ReasonUnchanged},

		"written by an older operator":                              {there: changes{order("4"), edited, asApplied}, action: Update, reason: ReasonOlder, says: "schema-version 4, this operator's is 5"},
		"older, though the content is the same":                     {there: changes{order("4")}, action: Update, reason: ReasonOlder},
		"older, seen while running":                                 {there: changes{order("4")}, when: running, action: Update, reason: ReasonOlder},
		"ours, but without an order":                                {there: changes{order("")}, action: Update, reason: ReasonOlder},
		"ours, with an order that is no number":                     {there: changes{order("v5")}, action: Update, reason: ReasonOlder},
		"written by a newer operator that still serves us":          {there: changes{order("6"), withField, otherHash, asApplied}, action: Keep, reason: ReasonNewer, says: "schema-version 6, this operator's is 5"},
		"newer, without our version":                                {there: changes{order("6"), unserved}, action: Refuse, reason: ReasonNewerUnusable, says: "Run the newer operator"},
		"newer, without a field that holds the record":              {there: changes{order("6"), withoutField}, action: Refuse, reason: ReasonNewerUnusable, says: "status.epoch"},
		"newer, with another scope":                                 {there: changes{order("6"), clusterScoped}, action: Refuse, reason: ReasonNewerUnusable, says: "Run the newer operator"},
		"newer, stored in a version that only its webhook converts": {there: changes{order("6"), defining("v2"), converted, storedIn("v1", "v2")}, action: Refuse, reason: ReasonNewerUnusable, says: "only the newer operator's webhook converts"},
		"newer, converting, but stored in ours":                     {there: changes{order("6"), defining("v2"), converted, storedIn("v1")}, action: Keep, reason: ReasonNewerConverts, says: "While no newer operator runs, requests in v2 fail"},
		"newer, converting, but only ours is served":                {there: changes{order("6"), defining("v2"), unservedToo("v2"), converted, storedIn("v1")}, action: Keep, reason: ReasonNewer},

		"edited by hand":                       {there: changes{edited}, action: Update, reason: ReasonEdited},
		"edited by hand, seen while running":   {there: changes{edited}, when: running, action: Update, reason: ReasonEdited},
		"edited by hand: a field removed":      {there: changes{withoutField}, action: Update, reason: ReasonEdited},
		"edited by hand: no longer served":     {there: changes{unserved}, action: Update, reason: ReasonEdited},
		"a missed bump, at boot":               {there: changes{edited, otherHash, asApplied}, action: Update, reason: ReasonOtherBuild, says: "raise schema-version"},
		"a missed bump, seen while running":    {there: changes{edited, otherHash, asApplied}, when: running, action: Keep, reason: ReasonOtherBuild},
		"a missed bump that does not serve us": {there: changes{withoutField, otherHash, asApplied}, when: running, action: Update, reason: ReasonOtherBuild},

		"managed by Helm, and good enough":          {there: changes{byHelm}, action: Keep, reason: ReasonForeign, says: "Helm release shop/widgets manages it"},
		"managed by another tool, and good enough":  {there: changes{foreign}, action: Keep, reason: ReasonForeign, says: "set this label"},
		"unmanaged, and good enough":                {there: changes{unmarked}, action: Keep, reason: ReasonForeign},
		"unmanaged, accepting any field":            {there: changes{unmarked, anyFields}, action: Keep, reason: ReasonForeign},
		"unmanaged, without a field of ours":        {there: changes{unmarked, withoutField}, action: Refuse, reason: ReasonForeignUnusable, says: "kubectl label crd widgets.example.com"},
		"unmanaged, not served":                     {there: changes{unmarked, unserved}, action: Refuse, reason: ReasonForeignUnusable, says: "version v1 is not served"},
		"unmanaged, without status subresource":     {there: changes{unmarked, withoutStatus}, action: Refuse, reason: ReasonForeignUnusable, says: "no status subresource"},
		"unmanaged, with another kind":              {there: changes{unmarked, otherKind}, action: Refuse, reason: ReasonForeignUnusable, says: "its kind is Gadget, not Widget"},
		"managed by Helm, to be adopted":            {there: changes{byHelm}, when: Situation{Adopt: true}, action: Update, reason: ReasonAdopted, says: "Helm release"},
		"unmanaged, of another kind, to be adopted": {there: changes{unmarked, otherKind}, when: Situation{Adopt: true}, action: Refuse, reason: ReasonIdentityDiffers},
		"ours with another scope":                   {there: changes{order("4"), clusterScoped}, action: Refuse, reason: ReasonIdentityDiffers, says: "its scope is Cluster, not Namespaced"},
		"ours with another kind":                    {there: changes{otherKind}, action: Refuse, reason: ReasonIdentityDiffers, says: "back up its objects"},

		"stored in our version":                                {there: changes{storedIn("v1")}, action: Keep, reason: ReasonUnchanged},
		"objects stored in a version we dropped":               {there: changes{order("4"), defining("v0"), storedIn("v0", "v1")}, action: Update, reason: ReasonOlder},
		"a removed version, with nothing stored in it":         {there: changes{order("4"), defining("v0"), asApplied, storedIn("v1")}, action: Mark, reason: ReasonServed, says: "version v0 is removed"},
		"a version added by hand":                              {there: changes{defining("v0"), storedIn("v1")}, action: Mark, reason: ReasonServed},
		"a removed version, no longer served":                  {there: changes{order("4"), defining("v0"), unservedToo("v0"), asApplied, storedIn("v1")}, action: Mark, reason: ReasonServed},
		"a version we carried over, with nothing stored in it": {there: changes{carrying("v0"), asApplied, storedIn("v1")}, action: Update, reason: ReasonMigrated},
		"objects stored in a version without a definition":     {there: changes{order("4"), storedIn("v0", "v1")}, action: Refuse, reason: ReasonStoredVersionGone, says: "stored in version v0"},
		"objects stored in a version that we cannot convert":   {there: changes{order("4"), defining("v0"), converted, storedIn("v0", "v1")}, action: Refuse, reason: ReasonStoredVersionGone, says: "cannot convert"},

		"narrower, and objects were not checked":        {there: changes{narrower}, action: Update, reason: ReasonOlder},
		"narrower, and every object fits":               {there: changes{narrower}, when: Situation{Objects: &Objects{Seen: 7}}, action: Update, reason: ReasonOlder},
		"narrower, and an object does not fit":          {there: changes{narrower}, when: Situation{Objects: misfit()}, action: Refuse, reason: ReasonWouldHarm, says: "shop/a would lose spec.invented"},
		"narrower, and that is allowed":                 {there: changes{narrower}, when: Situation{Objects: misfit(), AllowBreaking: true}, action: Update, reason: ReasonOlder, says: "1 of 7 objects: shop/a"},
		"widened by hand, objects use it, seen running": {there: changes{withField}, when: Situation{Objects: misfit(), Running: true}, action: Refuse, reason: ReasonWouldHarm, says: "Fix these objects"},

		"being deleted":                     {there: changes{beingDeleted}, action: Wait, reason: ReasonBeingDeleted},
		"being deleted, whoever manages it": {there: changes{foreign, beingDeleted}, action: Wait, reason: ReasonBeingDeleted},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			want := ours(t)
			there := want.Object()
			there.ResourceVersion, there.UID = "42", "it"
			for _, apply := range test.there {
				apply(there)
			}
			before := there.DeepCopy()
			test.when.Existing = there
			got := Decide(test.when, want)
			first := got.Decision()
			if first.Action != test.action || first.Reason != test.reason || !strings.Contains(first.Message, test.says) {
				t.Errorf("decided %s (%s: %s), want %s (%s: …%s…)", first.Action, first.Reason, first.Message, test.action, test.reason, test.says)
			}
			if !sameSpec(before, there) {
				t.Error("Decide changed its input")
			}
			checkPlan(t, got)
		})
	}
}

func misfit() *Objects {
	return &Objects{Seen: 7, Harmed: 1, Findings: []Finding{{Namespace: "shop", Name: "a", Lost: []string{"spec.invented"}}}}
}

func carrying(version string) change {
	return func(object *apiextensionsv1.CustomResourceDefinition) {
		defining(version)(object)
		unservedToo(version)(object)
		object.Annotations[us.CarriedAnnotation()] = version
	}
}

func unservedToo(version string) change {
	return func(object *apiextensionsv1.CustomResourceDefinition) { findVersion(object, version).Served = false }
}

// checkPlan checks what the installer relies on in every plan.
func checkPlan(t *testing.T, plan Plan) {
	t.Helper()
	action := plan.Decision().Action
	writes := action == Create || action == Update || action == Mark
	if shows := writes || plan.Decision().Reason == ReasonWouldHarm; shows != (plan.Target != nil) {
		t.Errorf("%s has target %v", action, plan.Target)
	}
	if plan.NeedsObjects && (!writes || plan.Harm != nil) {
		t.Errorf("%s needs a check of objects, with the result %v", action, plan.Harm)
	}
	if action == Update && (plan.Target.ResourceVersion != "42" || plan.Target.UID != "it") {
		t.Error("the update is not bound to the object it was decided on")
	}
	if marks := action == Mark; marks != (len(plan.Stored) > 0) {
		t.Errorf("%s adds %v to the stored versions", action, plan.Stored)
	}
	for _, step := range plan.Steps {
		if step.Message == "" || step.Reason == "" {
			t.Errorf("step %s has no reason or no message", step.Action)
		}
	}
}

func TestDecideCreatesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	want := ours(t)
	got := Decide(Situation{}, want)
	if got.Decision().Reason != ReasonNotFound || got.Target.ResourceVersion != "" {
		t.Errorf("decided %+v", got)
	}
	if got.Target.Labels[OwnerLabel] != us.Owner || got.Target.Annotations[us.HashAnnotation()] != want.Hash {
		t.Error("what would be created does not carry our marks")
	}
}

// TestDecideCarriesStoredVersionsOver guards against the API server's refusal to drop a version that is listed in status.storedVersions.
func TestDecideCarriesStoredVersionsOver(t *testing.T) {
	t.Parallel()
	want := ours(t)
	there := want.Object()
	defining("v0")(there)
	storedIn("v0", "v1")(there)
	order("4")(there)

	first := Decide(Situation{Existing: there}, want)
	carried := findVersion(first.Target, "v0")
	if carried == nil || carried.Served || carried.Storage {
		t.Fatalf("v0 is carried over as %+v, want it there, unserved and not for storing", carried)
	}
	if !first.HasStep(CarryOver) || !first.HasStep(Migrate) {
		t.Errorf("the plan does not carry over or migrate: %v", first.Steps)
	}
	applied := first.Target.DeepCopy()
	applied.Status.StoredVersions = []string{"v0", "v1"}
	if second := Decide(Situation{Existing: applied, Running: true}, want); second.Decision().Action != Keep || !second.HasStep(Migrate) {
		t.Errorf("after the update: %v, want nothing but the migration", second.Steps)
	}
	applied.Status.StoredVersions = []string{"v1"}
	if third := Decide(Situation{Existing: applied, Running: true}, want); third.Decision().Reason != ReasonMigrated || findVersion(third.Target, "v0") != nil {
		t.Errorf("after the migration: %v, want an update that drops v0", third.Steps)
	}
}

// TestDecideSkipsReleases: this release has dropped two versions of the former operator, and stores objects in another one.
func TestDecideSkipsReleases(t *testing.T) {
	t.Parallel()
	want := ours(t)
	there := want.Object()
	there.Spec.Versions[0].Name = "v1alpha1"
	defining("v1alpha2")(there)
	order("1")(there)
	asApplied(there)
	storedIn("v1alpha1", "v1alpha2")(there)
	got := Decide(Situation{Existing: there}, want)
	if got.Decision().Reason != ReasonOlder || findVersion(got.Target, "v1alpha1") == nil || findVersion(got.Target, "v1alpha2") == nil || storageVersion(got.Target) != "v1" {
		t.Errorf("planned %v for versions %v", got.Steps, got.Target.Spec.Versions)
	}
}

func TestAConversionOfItsOwnIsKeptUpToDate(t *testing.T) {
	t.Parallel()
	want := ours(t)
	want.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte("new")},
	}}
	there := want.Object()
	if got := Decide(Situation{Existing: there}, want); got.Decision().Reason != ReasonUnchanged {
		t.Errorf("decided %v", got.Steps)
	}
	elsewhere := want
	elsewhere.Conversion, elsewhere.Converts = nil, []string{"v1"}
	if got := Decide(Situation{Existing: there}, elsewhere); got.Decision().Reason != ReasonUnchanged {
		t.Errorf("a program that does not know the webhook's address decided %v", got.Steps)
	}
	there.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("old")
	if got := Decide(Situation{Existing: there, Running: true}, want); got.Decision().Reason != ReasonConversionChanged || got.NeedsObjects {
		t.Errorf("decided %v", got.Steps)
	}
}

// TestAVersionThatGoesLeavesNoTrace: nothing is stored in the removed version, but objects may name it in managedFields. So it is marked,
// carried over, migrated, and dropped.
func TestAVersionThatGoesLeavesNoTrace(t *testing.T) {
	t.Parallel()
	want := ours(t)
	there := want.Object()
	defining("v0")(there)
	order("4")(there)
	asApplied(there)
	storedIn("v1")(there)
	first := Decide(Situation{Existing: there}, want)
	if first.Decision().Action != Mark || strings.Join(first.Stored, ",") != "v1,v0" || !first.HasStep(Update) {
		t.Fatalf("planned %v, stored %v", first.Steps, first.Stored)
	}
	there.Status.StoredVersions = first.Stored
	second := Decide(Situation{Existing: there}, want)
	if second.Decision().Action != Update || !second.HasStep(CarryOver) || !second.HasStep(Migrate) {
		t.Fatalf("then %v", second.Steps)
	}
	there = second.Target.DeepCopy()
	there.Status.StoredVersions = []string{"v1"}
	third := Decide(Situation{Existing: there, Running: true}, want)
	if third.Decision().Reason != ReasonMigrated || len(third.Target.Spec.Versions) != 1 || third.Target.Annotations[us.CarriedAnnotation()] != "" {
		t.Errorf("after the migration %v", third.Steps)
	}
}
