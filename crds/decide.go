package crds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Action is what is to be done about one definition.
type Action string

const (
	// Create registers a definition the cluster does not have.
	Create Action = "Create"
	// Update brings a definition of ours to what this operator needs.
	Update Action = "Update"
	// Keep leaves the definition as it is: it serves what this operator needs.
	Keep Action = "Keep"
	// Wait means the definition is on its way out and must be gone before it can be created.
	Wait Action = "Wait"
	// Refuse means this operator cannot work with what is there, and must not change it.
	Refuse Action = "Refuse"
)

// Reason is the cause of a decision in one word. The words are the same in logs, errors and the crds subcommand.
type Reason string

// The reasons.
const (
	ReasonNotFound          Reason = "NotFound"          // Create: the cluster has no such definition
	ReasonUnchanged         Reason = "Unchanged"         // Keep: content and marks are ours
	ReasonOlder             Reason = "Older"             // Update: an older operator wrote it
	ReasonChanged           Reason = "Changed"           // Update: same order, other content: edited by hand, or a forgotten bump
	ReasonNewer             Reason = "Newer"             // Keep: a newer operator wrote it, and it serves us
	ReasonForeign           Reason = "Foreign"           // Keep: somebody else manages it, and it serves us
	ReasonNewerUnusable     Reason = "NewerUnusable"     // Refuse: a newer operator wrote it, and it does not serve us
	ReasonForeignUnusable   Reason = "ForeignUnusable"   // Refuse: somebody else manages it, and it does not serve us
	ReasonIdentityDiffers   Reason = "IdentityDiffers"   // Refuse: scope, group or kind differ, which no update can change
	ReasonStoredVersionGone Reason = "StoredVersionGone" // Refuse: objects are stored in a version nobody defines any more
	ReasonBeingDeleted      Reason = "BeingDeleted"      // Wait: somebody deleted it, and its objects are going
)

// Decision is what to do about one definition and why.
type Decision struct {
	Action Action
	Reason Reason
	// Message explains the decision in a sentence; for Refuse it ends with the remedy.
	Message string
	// Target is the definition to apply, for Create and Update. For Update it carries the resourceVersion and UID of the object the
	// decision was made on, and the versions objects are still stored in.
	Target *apiextensionsv1.CustomResourceDefinition
}

// Decide compares the definition the cluster has (nil if none) with the one we bring. It is pure: same input, same decision. The first
// rule that applies wins.
func Decide(existing *apiextensionsv1.CustomResourceDefinition, want Definition) Decision {
	if existing == nil {
		return Decision{Create, ReasonNotFound, "the cluster does not have it yet", want.Object()}
	}
	if existing.DeletionTimestamp != nil {
		return Decision{Wait, ReasonBeingDeleted, "it is being deleted, and its objects with it", nil}
	}
	if existing.Labels[OwnerLabel] != Owner {
		return decideForeign(existing, want)
	}
	if order := orderOf(existing); order > want.Version {
		return decideNewer(existing, want, order)
	}
	if difference := identityDifference(existing, want); difference != "" {
		message := fmt.Sprintf("%s, which cannot be changed: back up its objects, delete the definition, and start the operator again", difference)
		return Decision{Refuse, ReasonIdentityDiffers, message, nil}
	}
	return decideOurs(existing, want)
}

func decideForeign(existing *apiextensionsv1.CustomResourceDefinition, want Definition) Decision {
	lacks := firstOf(identityDifference(existing, want), shortfall(existing, want))
	if lacks == "" {
		message := fmt.Sprintf("it is not managed by this operator (no label %s=%s) but serves all it needs; label it so to have it kept up to date", OwnerLabel, Owner)
		return Decision{Keep, ReasonForeign, message, nil}
	}
	message := fmt.Sprintf("it is not managed by this operator and does not serve what it needs: %s. "+
		"If nobody else needs it as it is, hand it over: kubectl label crd %s %s=%s --overwrite", lacks, want.Name(), OwnerLabel, Owner)
	return Decision{Refuse, ReasonForeignUnusable, message, nil}
}

func decideNewer(existing *apiextensionsv1.CustomResourceDefinition, want Definition, order int) Decision {
	lacks := firstOf(identityDifference(existing, want), shortfall(existing, want))
	if lacks == "" {
		return Decision{Keep, ReasonNewer, fmt.Sprintf("a newer operator wrote it (schema-version %d, ours is %d), and it serves all this one needs", order, want.Version), nil}
	}
	message := fmt.Sprintf("a newer operator wrote it (schema-version %d, ours is %d), and it no longer serves what this one needs: %s. Run the newer operator", order, want.Version, lacks)
	return Decision{Refuse, ReasonNewerUnusable, message, nil}
}

func decideOurs(existing *apiextensionsv1.CustomResourceDefinition, want Definition) Decision {
	target, orphan := targetFor(existing, want)
	if orphan != "" {
		message := fmt.Sprintf("objects are stored in version %s, which neither the cluster's definition nor this operator's has: "+
			"run the operator release that had it, and let it migrate them", orphan)
		return Decision{Refuse, ReasonStoredVersionGone, message, nil}
	}
	if order := orderOf(existing); order < want.Version {
		return Decision{Update, ReasonOlder, fmt.Sprintf("an older operator wrote it (schema-version %d, ours is %d)", order, want.Version), target}
	}
	if !sameSpec(existing, target) {
		return Decision{Update, ReasonChanged, "its content differs though its schema-version does not: it was edited, or another build wrote it", target}
	}
	if existing.Annotations[HashAnnotation] != want.Hash {
		return Decision{Update, ReasonChanged, "its content is ours but its schema-hash is not", target}
	}
	return Decision{Keep, ReasonUnchanged, "it is as this operator needs it", nil}
}

// targetFor returns the definition to apply over existing. Versions that objects are still stored in and that we no longer define are
// carried over, unserved and not for storing, because the API server refuses to drop them; orphan names one that cannot be carried over.
func targetFor(existing *apiextensionsv1.CustomResourceDefinition, want Definition) (target *apiextensionsv1.CustomResourceDefinition, orphan string) {
	target = want.Object()
	target.ResourceVersion, target.UID = existing.ResourceVersion, existing.UID
	for _, stored := range existing.Status.StoredVersions {
		if findVersion(target, stored) != nil {
			continue
		}
		carried := findVersion(existing, stored)
		if carried == nil {
			return nil, stored
		}
		carried = carried.DeepCopy()
		carried.Served, carried.Storage = false, false
		target.Spec.Versions = append(target.Spec.Versions, *carried)
	}
	return target, ""
}

// sameSpec says whether applying target would change existing's spec: both are compared as the API server would store them.
func sameSpec(existing, target *apiextensionsv1.CustomResourceDefinition) bool {
	has, wants := existing.Spec.DeepCopy(), target.Spec.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(has)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(wants)
	return equality.Semantic.DeepEqual(has, wants)
}

// identityDifference names what differs and can never be changed in a definition (validateCustomResourceDefinitionSpecUpdate of
// k8s.io/apiextensions-apiserver); empty if nothing does.
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

// shortfall names what existing lacks for this operator to work with it; empty if nothing.
func shortfall(existing *apiextensionsv1.CustomResourceDefinition, want Definition) string {
	has, wants := findVersion(existing, want.Kind.Version), findVersion(want.object, want.Kind.Version)
	if has == nil || !has.Served {
		return fmt.Sprintf("version %s is not served", want.Kind.Version)
	}
	if has.Subresources == nil || has.Subresources.Status == nil {
		return fmt.Sprintf("version %s has no status subresource", want.Kind.Version)
	}
	if has.Schema == nil || has.Schema.OpenAPIV3Schema == nil {
		return fmt.Sprintf("version %s has no schema", want.Kind.Version)
	}
	if missing := missingFields(has.Schema.OpenAPIV3Schema, wants.Schema.OpenAPIV3Schema, ""); len(missing) > 0 {
		shown := missing[:min(3, len(missing))]
		return fmt.Sprintf("%d of the fields this operator uses would be dropped, such as %s", len(missing), strings.Join(shown, ", "))
	}
	return ""
}

func findVersion(object *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	at := slices.IndexFunc(object.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return version.Name == name })
	if at < 0 {
		return nil
	}
	return &object.Spec.Versions[at]
}

// orderOf returns the definition's schema-version; one that is missing or unreadable counts as older than all.
func orderOf(object *apiextensionsv1.CustomResourceDefinition) int {
	order, err := strconv.Atoi(object.Annotations[VersionAnnotation])
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
