package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Action is what a plan does about one definition.
type Action string

const (
	// Create registers a definition that the cluster does not have.
	Create Action = "Create"
	// Update changes a definition that this program manages to what it needs.
	Update Action = "Update"
	// Keep leaves the definition as it is: it serves what this program needs.
	Keep Action = "Keep"
	// Wait means that the definition is being deleted. It can be created only after that.
	Wait Action = "Wait"
	// Refuse means that this program cannot work with the existing definition, and must not change it.
	Refuse Action = "Refuse"

	// Mark adds a version that is being removed to status.storedVersions, before it is carried over and migrated. No object is stored in
	// the version, but objects may name it in managedFields. Every server-side apply to them would fail after the removal
	// (https://github.com/kubernetes/kubernetes/issues/111937).
	Mark Action = "Mark"
	// CarryOver keeps, unserved, a version that objects are still stored in. It follows Update or Keep.
	CarryOver Action = "CarryOver"
	// Migrate rewrites the objects that are stored in other versions than the storage version. The leader does this after boot. It follows
	// Update or Keep.
	Migrate Action = "Migrate"
)

// Reason is the cause of a step in one word. The words are the same in logs, errors, metrics, events and the crds subcommand.
type Reason string

// The reasons.
const (
	ReasonNotFound          Reason = "NotFound"          // Create: the cluster has no such definition
	ReasonUnchanged         Reason = "Unchanged"         // Keep: content and marks are as this program needs them
	ReasonOlder             Reason = "Older"             // Update: an older program wrote it
	ReasonEdited            Reason = "Edited"            // Update: another client edited what this program had applied
	ReasonOtherBuild        Reason = "OtherBuild"        // Update at boot, else Keep: another build of the same order wrote it
	ReasonMigrated          Reason = "Migrated"          // Update: a version that was carried over has no stored objects any more
	ReasonConversionChanged Reason = "ConversionChanged" // Update: the conversion webhook has another address or certificate
	ReasonAdopted           Reason = "Adopted"           // Update: another manager owned it, and a user asked this program to adopt it
	ReasonNewer             Reason = "Newer"             // Keep: a newer program wrote it, and it serves this one
	ReasonNewerConverts     Reason = "NewerConverts"     // Keep: the same, but only the newer program converts between versions
	ReasonForeign           Reason = "Foreign"           // Keep: another manager owns it, and it serves this program
	ReasonNewerUnusable     Reason = "NewerUnusable"     // Refuse: a newer program wrote it, and it does not serve this one
	ReasonForeignUnusable   Reason = "ForeignUnusable"   // Refuse: another manager owns it, and it does not serve this program
	ReasonIdentityDiffers   Reason = "IdentityDiffers"   // Refuse: scope, group or kind differ, which no update can change
	ReasonStoredVersionGone Reason = "StoredVersionGone" // Refuse: objects are stored in a version that no program can convert
	ReasonWouldHarm         Reason = "WouldHarm"         // Refuse: objects would lose fields, or become invalid
	ReasonServed            Reason = "Served"            // Mark: clients may have used a version that is removed
	ReasonBeingDeleted      Reason = "BeingDeleted"      // Wait: a client deleted it, and the API server is deleting its objects
	ReasonStored            Reason = "Stored"            // CarryOver, Migrate: objects are stored in a version that is not the storage version
)

// Step is one step of a plan.
type Step struct {
	Action Action
	Reason Reason
	// Message explains the step in a sentence. For Refuse it ends with what the user can do.
	Message string
}

// Plan is what to do about one definition, and why. The first step is the decision; CarryOver and Migrate may follow.
type Plan struct {
	Steps []Step
	// NeedsObjects says that the objects must be checked before the plan is carried out, because it changes something that could affect
	// them.
	NeedsObjects bool
	// Harm is the result of the check of the objects; nil if they were not checked.
	Harm *Objects
	// Stored is the new value of status.storedVersions, for Mark.
	Stored []string
	// Target is the definition to apply, for Create and Update. For Mark, it is the definition that is applied afterwards; for a refusal
	// because of objects, the definition that would harm them. Except for Create, it carries the resourceVersion and UID of the object that
	// the decision was made on, and the versions that objects are still stored in.
	Target *apiextensionsv1.CustomResourceDefinition
}

// Decision returns the first step.
func (p Plan) Decision() Step { return p.Steps[0] }

// HasStep reports whether the plan has such a step.
func (p Plan) HasStep(action Action) bool {
	return slices.ContainsFunc(p.Steps, func(step Step) bool { return step.Action == action })
}

// Objects is the result of a check of custom resources before an update.
type Objects struct {
	// Seen is the number of checked objects, Harmed the number of those that would lose fields or become invalid.
	Seen, Harmed int
	// Findings are the first harmed objects, sorted by namespace and name.
	Findings []Finding
	// Namespaces are those that were checked; nil means all.
	Namespaces []string
}

// Finding is what an update would do to one object.
type Finding struct {
	Namespace, Name string
	// Lost are the paths of the fields that the new schema would drop.
	Lost []string
	// Invalid are the API server's messages about what the new schema would refuse.
	Invalid []string
}

// String returns the finding in one line.
func (f Finding) String() string {
	parts := []string{}
	if len(f.Lost) > 0 {
		parts = append(parts, "would lose "+strings.Join(f.Lost, ", "))
	}
	if len(f.Invalid) > 0 {
		parts = append(parts, "would be invalid: "+strings.Join(f.Invalid, "; "))
	}
	name := f.Name
	if f.Namespace != "" {
		name = f.Namespace + "/" + f.Name
	}
	return name + " " + strings.Join(parts, "; ")
}

func (o Objects) String() string {
	const shown = 5
	lines := []string{}
	for _, finding := range o.Findings[:min(shown, len(o.Findings))] {
		lines = append(lines, finding.String())
	}
	if more := o.Harmed - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d of %d objects: %s", o.Harmed, o.Seen, strings.Join(lines, " | "))
}

// ObjectChecker checks existing objects before an update.
type ObjectChecker interface {
	// Check finds out what the target would do to the objects of the existing definition.
	Check(ctx context.Context, existing, target *apiextensionsv1.CustomResourceDefinition) (Objects, error)
}
