package crds

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/schema"
)

// ours is the definition this operator brings in the tests: MySQLCluster, as if it were in its fifth edition.
func ours(t *testing.T) Definition {
	t.Helper()
	definitions, err := Load(schema.Kinds()[:1])
	if err != nil {
		t.Fatal(err)
	}
	definition := definitions[0]
	definition.Version = 5
	definition.object.Annotations[VersionAnnotation] = "5"
	return definition
}

// change is one thing that is different in the cluster's definition.
type change func(*apiextensionsv1.CustomResourceDefinition)

func order(text string) change {
	return func(object *apiextensionsv1.CustomResourceDefinition) { object.Annotations[VersionAnnotation] = text }
}

func foreign(object *apiextensionsv1.CustomResourceDefinition) {
	object.Labels[OwnerLabel] = "Helm"
}

func unmarked(object *apiextensionsv1.CustomResourceDefinition) {
	object.Labels, object.Annotations = nil, nil
}

func otherHash(object *apiextensionsv1.CustomResourceDefinition) {
	object.Annotations[HashAnnotation] = "0"
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
	object.Spec.Names.Kind = "MySqlCluster"
}

func storedAs(versions ...string) change {
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
	object.Generation, object.ManagedFields = 3, []metav1.ManagedFieldsEntry{{Manager: FieldManager}}
}

// TestDecide is the specification: what is there (our own definition but for the changes) → what is done about it, and why.
func TestDecide(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		there  []change
		action Action
		reason Reason
		says   string
	}{
		"as we left it": {nil, Keep, ReasonUnchanged, ""},
		"as we left it, with what others and the server add": {[]change{serverFilled}, Keep, ReasonUnchanged, ""},
		"written by an older operator":                       {[]change{order("4"), edited}, Update, ReasonOlder, "schema-version 4, ours is 5"},
		"older, though the content is the same":              {[]change{order("4")}, Update, ReasonOlder, ""},
		"ours, but without an order":                         {[]change{order("")}, Update, ReasonOlder, ""},
		"ours, with an order that is no number":              {[]change{order("v5")}, Update, ReasonOlder, ""},
		"edited by hand":                                     {[]change{edited}, Update, ReasonChanged, ""},
		"edited by hand: a field taken away":                 {[]change{withoutField}, Update, ReasonChanged, ""},
		"edited by hand: a field added":                      {[]change{withField}, Update, ReasonChanged, ""},
		"same order, other content and hash: a missed bump":  {[]change{edited, otherHash}, Update, ReasonChanged, ""},
		"only the hash was edited":                           {[]change{otherHash}, Update, ReasonChanged, "schema-hash"},
		"version no longer served, by hand":                  {[]change{unserved}, Update, ReasonChanged, ""},
		"written by a newer operator that still serves us":   {[]change{order("6"), withField, otherHash}, Keep, ReasonNewer, "schema-version 6, ours is 5"},
		"newer, without our version":                         {[]change{order("6"), unserved}, Refuse, ReasonNewerUnusable, "Run the newer operator"},
		"newer, without a field we record the truth in":      {[]change{order("6"), withoutField}, Refuse, ReasonNewerUnusable, "status.epoch"},
		"newer, with another scope":                          {[]change{order("6"), clusterScoped}, Refuse, ReasonNewerUnusable, "Run the newer operator"},
		"managed by Helm, and good enough":                   {[]change{foreign}, Keep, ReasonForeign, "label it so"},
		"managed by nobody, and good enough":                 {[]change{unmarked}, Keep, ReasonForeign, ""},
		"managed by nobody, accepting any field":             {[]change{unmarked, anyFields}, Keep, ReasonForeign, ""},
		"managed by nobody, without a field of ours":         {[]change{unmarked, withoutField}, Refuse, ReasonForeignUnusable, "kubectl label crd mysqlclusters."},
		"managed by nobody, not served":                      {[]change{unmarked, unserved}, Refuse, ReasonForeignUnusable, "version v1 is not served"},
		"managed by nobody, without status subresource":      {[]change{unmarked, withoutStatus}, Refuse, ReasonForeignUnusable, "no status subresource"},
		"managed by nobody, with another kind":               {[]change{unmarked, otherKind}, Refuse, ReasonForeignUnusable, "its kind is MySqlCluster, not MySQLCluster"},
		"ours with another scope":                            {[]change{order("4"), clusterScoped}, Refuse, ReasonIdentityDiffers, "its scope is Cluster, not Namespaced"},
		"ours with another kind":                             {[]change{otherKind}, Refuse, ReasonIdentityDiffers, "back up its objects"},
		"stored in our version":                              {[]change{storedAs("v1")}, Keep, ReasonUnchanged, ""},
		"objects stored in a version we dropped":             {[]change{order("4"), defining("v0"), storedAs("v0", "v1")}, Update, ReasonOlder, ""},
		"a version we dropped, with nothing stored in it":    {[]change{defining("v0"), storedAs("v1")}, Update, ReasonChanged, ""},
		"objects stored in a version that nobody defines":    {[]change{order("4"), storedAs("v0", "v1")}, Refuse, ReasonStoredVersionGone, "stored in version v0"},
		"being deleted":                                      {[]change{beingDeleted}, Wait, ReasonBeingDeleted, ""},
		"being deleted, whoever manages it":                  {[]change{foreign, beingDeleted}, Wait, ReasonBeingDeleted, ""},
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
			got := Decide(there, want)
			if got.Action != test.action || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("decided %s (%s: %s), want %s (%s: …%s…)", got.Action, got.Reason, got.Message, test.action, test.reason, test.says)
			}
			if got.Message == "" {
				t.Error("the decision has no message")
			}
			if !sameSpec(before, there) {
				t.Error("deciding changed what was looked at")
			}
			checkTarget(t, got)
		})
	}
}

// checkTarget holds every decision to what the installer relies on.
func checkTarget(t *testing.T, decision Decision) {
	t.Helper()
	if writes := decision.Action == Create || decision.Action == Update; writes != (decision.Target != nil) {
		t.Errorf("%s has target %v", decision.Action, decision.Target)
	}
	if decision.Action == Update && (decision.Target.ResourceVersion != "42" || decision.Target.UID != "it") {
		t.Error("the update is not bound to what it was decided on")
	}
}

func TestDecideCreatesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	want := ours(t)
	got := Decide(nil, want)
	if got.Action != Create || got.Reason != ReasonNotFound || got.Target.ResourceVersion != "" {
		t.Errorf("decided %+v", got)
	}
	if got.Target.Labels[OwnerLabel] != Owner || got.Target.Annotations[HashAnnotation] != want.Hash {
		t.Error("what would be created does not carry our marks")
	}
}

// TestDecideCarriesStoredVersionsOver guards against the API server's refusal to drop a version that is listed in status.storedVersions.
func TestDecideCarriesStoredVersionsOver(t *testing.T) {
	t.Parallel()
	want := ours(t)
	there := want.Object()
	defining("v0")(there)
	storedAs("v0", "v1")(there)
	order("4")(there)

	first := Decide(there, want)
	carried := findVersion(first.Target, "v0")
	if carried == nil || carried.Served || carried.Storage {
		t.Fatalf("v0 is carried over as %+v, want it there, unserved and not for storing", carried)
	}
	applied := first.Target.DeepCopy()
	applied.Status.StoredVersions = []string{"v0", "v1"}
	if second := Decide(applied, want); second.Action != Keep {
		t.Errorf("after the update: %s (%s), want nothing more to do", second.Action, second.Message)
	}
	applied.Status.StoredVersions = []string{"v1"}
	if third := Decide(applied, want); third.Action != Update || findVersion(third.Target, "v0") != nil {
		t.Errorf("after the migration: %s, want an update that drops v0", third.Action)
	}
}
