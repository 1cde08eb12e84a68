package crds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Situation is the input of a plan.
type Situation struct {
	// Existing is the cluster's definition; nil if it has none.
	Existing *apiextensionsv1.CustomResourceDefinition
	// Objects is the result of the check of its objects; nil if they were not checked.
	Objects *Objects
	// Running says that this program has installed its definitions and now watches them. Another build of the same order may have been
	// started since.
	Running bool
	// Adopt takes over a definition that another manager owns.
	Adopt bool
	// AllowBreaking updates even if this harms objects.
	AllowBreaking bool
}

// Decide compares the cluster's definition with the program's. It is pure: same input, same plan. The first rule that applies wins.
func Decide(there Situation, want Definition) Plan {
	existing := there.Existing
	if existing == nil {
		return Plan{Steps: []Step{{Create, ReasonNotFound, "the cluster does not have it yet"}}, Target: want.Object()}
	}
	if existing.DeletionTimestamp != nil {
		return only(Wait, ReasonBeingDeleted, "it and its objects are being deleted")
	}
	if existing.Labels[OwnerLabel] != want.identity.Owner && !there.Adopt {
		return decideForeign(existing, want)
	}
	if order := want.identity.orderOf(existing); order > want.Version {
		return decideNewer(existing, want, order)
	}
	if difference := identityDifference(existing, want); difference != "" {
		return only(Refuse, ReasonIdentityDiffers, difference+", which cannot be changed: back up its objects, delete the definition, and start the operator again")
	}
	return decideOurs(there, want)
}

func only(action Action, reason Reason, message string) Plan {
	return Plan{Steps: []Step{{action, reason, message}}}
}

func decideForeign(existing *apiextensionsv1.CustomResourceDefinition, want Definition) Plan {
	by := managerOf(existing)
	lacks := firstOf(identityDifference(existing, want), unmetNeed(existing, want))
	if lacks == "" {
		message := fmt.Sprintf("%s manages it, not this operator (no label %s=%s), and it serves all that this operator needs; set this label to let the operator update it", by, OwnerLabel, want.identity.Owner)
		return only(Keep, ReasonForeign, message)
	}
	message := fmt.Sprintf("%s manages it, not this operator, and it does not serve what this operator needs: %s. If no other program needs it as it is, assign it to this operator: "+
		"kubectl label crd %s %s=%s --overwrite", by, lacks, want.Name(), OwnerLabel, want.identity.Owner)
	return only(Refuse, ReasonForeignUnusable, message)
}

func decideNewer(existing *apiextensionsv1.CustomResourceDefinition, want Definition, order int) Plan {
	newer := fmt.Sprintf("a newer operator wrote it (schema-version %d, this operator's is %d)", order, want.Version)
	lacks := firstOf(identityDifference(existing, want), unmetNeed(existing, want), unmetConversion(existing, want))
	if lacks != "" {
		return only(Refuse, ReasonNewerUnusable, newer+", and it no longer serves what this operator needs: "+lacks+". Run the newer operator")
	}
	if others := otherConvertedVersions(existing, want); others != "" {
		const consequences = "%s, and it serves all that this operator needs, but only the newer operator converts to and from version %s. While no newer operator runs, " +
			"requests in %[2]s fail, also kubectl get without a version and the deletion of namespaces with such objects. Objects that were written in %[2]s " +
			"accept no server-side apply, not even of their status. Nothing is lost: run the newer operator again"
		return only(Keep, ReasonNewerConverts, fmt.Sprintf(consequences, newer, others))
	}
	return only(Keep, ReasonNewer, newer+", and it serves all that this operator needs")
}

// decideOurs decides about a definition that this program may change.
func decideOurs(there Situation, want Definition) Plan {
	existing := there.Existing
	target, gone := targetFor(existing, want)
	if gone != "" {
		return only(Refuse, ReasonStoredVersionGone, gone)
	}
	reason, message := whyUpdate(there, want, target)
	if reason == "" {
		return Plan{Steps: append([]Step{{Keep, ReasonUnchanged, "it is as this operator needs it"}}, storedVersionSteps(existing, target)...)}
	}
	if reason == ReasonOtherBuild && there.Running && unmetNeed(existing, want) == "" {
		return only(Keep, ReasonOtherBuild, message+"; it serves all that this operator needs")
	}
	harmed := there.Objects != nil && there.Objects.Harmed > 0
	if harmed && !there.AllowBreaking {
		return Plan{Steps: []Step{{Refuse, ReasonWouldHarm, harmMessage(want, *there.Objects)}}, Harm: there.Objects, Target: target}
	}
	if harmed {
		message += "; --crds-allow-breaking permits the update, although it harms " + there.Objects.String()
	}
	plan := Plan{Steps: append([]Step{{Update, reason, message}}, storedVersionSteps(existing, target)...), Harm: there.Objects, Target: target}
	plan.NeedsObjects = there.Objects == nil && affectsObjects(existing, target)
	if going := removedVersions(existing, want); len(going) > 0 {
		told := fmt.Sprintf("version %s is removed: the operator first adds it to status.storedVersions, so that objects that name it in managedFields are rewritten", strings.Join(going, ", "))
		plan.Steps = append([]Step{{Mark, ReasonServed, told}}, plan.Steps...)
		plan.Stored = append(slices.Clone(existing.Status.StoredVersions), going...)
	}
	return plan
}

// removedVersions returns the versions that the cluster's definition has and the program's no longer has, and that need work: no object is
// known to be stored in them, and they were not carried over before.
func removedVersions(existing *apiextensionsv1.CustomResourceDefinition, want Definition) []string {
	seenTo := append(strings.Split(existing.Annotations[want.identity.CarriedAnnotation()], ","), existing.Status.StoredVersions...)
	going := []string{}
	for _, version := range existing.Spec.Versions {
		if findVersion(want.object, version.Name) == nil && !slices.Contains(seenTo, version.Name) {
			going = append(going, version.Name)
		}
	}
	return going
}

// whyUpdate returns why applying the target would change something; empty if it would not.
func whyUpdate(there Situation, want Definition, target *apiextensionsv1.CustomResourceDefinition) (Reason, string) {
	existing, identity := there.Existing, want.identity
	ours := existing.Annotations[identity.HashAnnotation()] == want.Hash
	switch order := identity.orderOf(existing); {
	case existing.Labels[OwnerLabel] != identity.Owner:
		return ReasonAdopted, fmt.Sprintf("%s managed it; this operator adopts it because of --crds-adopt", managerOf(existing))
	case order < want.Version:
		return ReasonOlder, fmt.Sprintf("an older operator wrote it (schema-version %d, this operator's is %d)", order, want.Version)
	case !identity.isAsApplied(existing):
		return ReasonEdited, "it differs from what the operator applied: another client edited it"
	case !ours:
		return ReasonOtherBuild, "another build of the same schema-version wrote it: raise schema-version with every change"
	case sameSpec(existing, target):
		return "", ""
	case !equality.Semantic.DeepEqual(existing.Spec.Conversion, target.Spec.Conversion):
		return ReasonConversionChanged, "its conversion webhook has another address or certificate"
	default:
		return ReasonMigrated, "no object is stored any more in a version that was carried over"
	}
}

// storedVersionSteps returns the steps for versions that objects are stored in and should not be.
func storedVersionSteps(existing, target *apiextensionsv1.CustomResourceDefinition) []Step {
	storage, steps := storageVersion(target), []Step{}
	others := slices.DeleteFunc(slices.Clone(existing.Status.StoredVersions), func(version string) bool { return version == storage })
	for _, version := range others {
		if carried := findVersion(target, version); carried != nil && !carried.Served {
			steps = append(steps, Step{CarryOver, ReasonStored, fmt.Sprintf("objects are stored in version %s: the version stays in the definition, unserved, until these objects are rewritten", version)})
		}
	}
	if len(others) > 0 {
		message := fmt.Sprintf("the leading operator rewrites objects that are stored in version %s as %s, then trims status.storedVersions", strings.Join(others, ", "), storage)
		steps = append(steps, Step{Migrate, ReasonStored, message})
	}
	return steps
}

func harmMessage(want Definition, objects Objects) string {
	return fmt.Sprintf("the new schema does not fit %s. Fix these objects, or run the former operator release. To update the definition nevertheless, set "+
		"--crds-allow-breaking (mysql-operator crds plan shows what changes in %s)", objects, want.Name())
}

// targetFor returns the definition to apply over existing. It carries over versions that the program no longer defines, and that objects
// are still stored in or that clients may have used. They are unserved and not the storage version. The API server refuses to drop them
// ("Upgrade existing objects to a new stored version" in
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/).
// gone says why that is impossible, and what the user can do.
func targetFor(existing *apiextensionsv1.CustomResourceDefinition, want Definition) (target *apiextensionsv1.CustomResourceDefinition, gone string) {
	target = want.Object()
	target.ResourceVersion, target.UID = existing.ResourceVersion, existing.UID
	if want.Conversion == nil && len(want.Converts) > 0 {
		target.Spec.Conversion = existing.Spec.Conversion.DeepCopy()
	}
	const remedy = "run the operator release that had this version, and let it rewrite the objects"
	carriedOver := []string{}
	for _, version := range append(slices.Clone(existing.Status.StoredVersions), removedVersions(existing, want)...) {
		if findVersion(target, version) != nil {
			continue
		}
		carried := findVersion(existing, version)
		if carried == nil {
			return nil, fmt.Sprintf("objects are stored in version %s, which neither the cluster's definition nor this operator's has: %s", version, remedy)
		}
		isStored := slices.Contains(existing.Status.StoredVersions, version)
		if isStored && (isConverted(existing) || isConverted(target)) && !slices.Contains(want.Converts, version) {
			return nil, fmt.Sprintf("objects are stored in version %s, which this operator cannot convert: %s", version, remedy)
		}
		carried = carried.DeepCopy()
		carried.Served, carried.Storage = false, false
		target.Spec.Versions = append(target.Spec.Versions, *carried)
		carriedOver = append(carriedOver, version)
	}
	if len(carriedOver) > 0 {
		target.Annotations = merged(target.Annotations, map[string]string{want.identity.CarriedAnnotation(): strings.Join(carriedOver, ",")})
	}
	// A spec that was read can be written as JSON, so there is no error.
	_ = want.identity.stamp(target)
	return target, ""
}

func isConverted(object *apiextensionsv1.CustomResourceDefinition) bool {
	return object.Spec.Conversion != nil && object.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// unmetConversion returns why an older program cannot work with a definition whose objects only a newer program can convert; empty if
// it can.
func unmetConversion(existing *apiextensionsv1.CustomResourceDefinition, want Definition) string {
	if !isConverted(existing) {
		return ""
	}
	for _, version := range append(slices.Clone(existing.Status.StoredVersions), storageVersion(existing)) {
		if version != want.Uses {
			return fmt.Sprintf("objects are stored in version %s, which only the newer operator's webhook converts to %s", version, want.Uses)
		}
	}
	return ""
}

// otherConvertedVersions returns the served versions that only the webhook of another program reads and writes; empty if there are none.
func otherConvertedVersions(existing *apiextensionsv1.CustomResourceDefinition, want Definition) string {
	if !isConverted(existing) {
		return ""
	}
	others := []string{}
	for _, version := range existing.Spec.Versions {
		if version.Served && version.Name != want.Uses {
			others = append(others, version.Name)
		}
	}
	return strings.Join(others, ", ")
}

// sameSpec reports whether applying target would leave existing's spec unchanged. It compares both as the API server would store them.
func sameSpec(existing, target *apiextensionsv1.CustomResourceDefinition) bool {
	return equality.Semantic.DeepEqual(defaulted(existing).Spec, defaulted(target).Spec)
}

// defaulted returns a copy with the API server's defaults.
func defaulted(object *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	object = object.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&object.Spec)
	return object
}

// isAsApplied reports whether the definition is as some program applied it.
func (i Identity) isAsApplied(existing *apiextensionsv1.CustomResourceDefinition) bool {
	hash, err := hashSpec(defaulted(existing).Spec)
	return err == nil && existing.Annotations[i.AppliedAnnotation()] == hash
}

// identityDifference returns the first difference in a field that cannot be changed in a definition
// (validateCustomResourceDefinitionSpecUpdate of k8s.io/apiextensions-apiserver); empty if there is none.
func identityDifference(existing *apiextensionsv1.CustomResourceDefinition, want Definition) string {
	has, wants := existing.Spec, want.object.Spec
	switch {
	case has.Group != wants.Group:
		return fmt.Sprintf("its group is %s, not %s", has.Group, wants.Group)
	case has.Names.Plural != wants.Names.Plural:
		return fmt.Sprintf("its plural name is %s, not %s", has.Names.Plural, wants.Names.Plural)
	case has.Names.Kind != wants.Names.Kind:
		return fmt.Sprintf("its kind is %s, not %s", has.Names.Kind, wants.Names.Kind)
	case has.Scope != wants.Scope:
		return fmt.Sprintf("its scope is %s, not %s", has.Scope, wants.Scope)
	default:
		return ""
	}
}

// unmetNeed returns what this program needs and existing does not serve; empty if it serves everything.
func unmetNeed(existing *apiextensionsv1.CustomResourceDefinition, want Definition) string {
	has, wants := findVersion(existing, want.Uses), findVersion(want.object, want.Uses)
	switch {
	case has == nil || !has.Served:
		return fmt.Sprintf("version %s is not served", want.Uses)
	case hasStatus(wants) && !hasStatus(has):
		return fmt.Sprintf("version %s has no status subresource", want.Uses)
	case has.Schema == nil || has.Schema.OpenAPIV3Schema == nil:
		return fmt.Sprintf("version %s has no schema", want.Uses)
	}
	if missing := missingFields(has.Schema.OpenAPIV3Schema, wants.Schema.OpenAPIV3Schema, ""); len(missing) > 0 {
		shown := missing[:min(3, len(missing))]
		return fmt.Sprintf("%d of the fields this operator uses would be dropped, such as %s", len(missing), strings.Join(shown, ", "))
	}
	return ""
}

func hasStatus(version *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return version.Subresources != nil && version.Subresources.Status != nil
}

func findVersion(object *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	at := slices.IndexFunc(object.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return version.Name == name })
	if at < 0 {
		return nil
	}
	return &object.Spec.Versions[at]
}

func storageVersion(object *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range object.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// orderOf returns the definition's schema-version; one that is missing or unreadable counts as older than all.
func (i Identity) orderOf(object *apiextensionsv1.CustomResourceDefinition) int {
	order, err := strconv.Atoi(object.Annotations[i.VersionAnnotation()])
	if err != nil {
		return 0
	}
	return order
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
