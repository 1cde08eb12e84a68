package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Action is what is to be done about one definition.
type Action string

const (
	// Create registers a definition the cluster does not have.
	Create Action = "Create"
	// Update brings a definition of ours to what this program needs.
	Update Action = "Update"
	// Keep leaves the definition as it is: it serves what this program needs.
	Keep Action = "Keep"
	// Wait means the definition is on its way out and must be gone before it can be created.
	Wait Action = "Wait"
	// Refuse means this program cannot work with what is there, and must not change it.
	Refuse Action = "Refuse"

	// Mark notes a version among those that objects are stored in, before it is carried over and migrated: it goes, and though no object is
	// stored in it, objects may name it in managedFields, which would make every server-side apply to them fail once it is gone
	// (https://github.com/kubernetes/kubernetes/issues/111937).
	Mark Action = "Mark"
	// CarryOver keeps, unserved, a version that objects are still stored in. It comes with Create, Update or Keep.
	CarryOver Action = "CarryOver"
	// Migrate rewrites the objects stored in other versions than the one for storing; the leader does so after boot. It comes with
	// Update or Keep.
	Migrate Action = "Migrate"
)

// Reason is the cause of a step in one word. The words are the same in logs, errors, metrics, events and the crds subcommand.
type Reason string

// The reasons.
const (
	ReasonNotFound          Reason = "NotFound"          // Create: the cluster has no such definition
	ReasonUnchanged         Reason = "Unchanged"         // Keep: content and marks are ours
	ReasonOlder             Reason = "Older"             // Update: an older program wrote it
	ReasonEdited            Reason = "Edited"            // Update: somebody edited what we had applied
	ReasonOtherBuild        Reason = "OtherBuild"        // Update at boot, else Keep: another build of the same order wrote it
	ReasonMigrated          Reason = "Migrated"          // Update: a version that was carried over has no stored objects any more
	ReasonConversionChanged Reason = "ConversionChanged" // Update: the conversion webhook has another address or certificate
	ReasonAdopted           Reason = "Adopted"           // Update: not ours before, taken over on request
	ReasonNewer             Reason = "Newer"             // Keep: a newer program wrote it, and it serves us
	ReasonNewerConverts     Reason = "NewerConverts"     // Keep: the same, but only the newer program converts between versions
	ReasonForeign           Reason = "Foreign"           // Keep: somebody else manages it, and it serves us
	ReasonNewerUnusable     Reason = "NewerUnusable"     // Refuse: a newer program wrote it, and it does not serve us
	ReasonForeignUnusable   Reason = "ForeignUnusable"   // Refuse: somebody else manages it, and it does not serve us
	ReasonIdentityDiffers   Reason = "IdentityDiffers"   // Refuse: scope, group or kind differ, which no update can change
	ReasonStoredVersionGone Reason = "StoredVersionGone" // Refuse: objects are stored in a version that nobody can read any more
	ReasonWouldHarm         Reason = "WouldHarm"         // Refuse: objects would lose fields, or become invalid
	ReasonServed            Reason = "Served"            // Mark: clients may have used a version that goes
	ReasonBeingDeleted      Reason = "BeingDeleted"      // Wait: somebody deleted it, and its objects are going
	ReasonStored            Reason = "Stored"            // CarryOver, Migrate: objects are stored in a version that is not for storing
)

// Step is one thing a plan does.
type Step struct {
	Action Action
	Reason Reason
	// Message explains the step in a sentence; for Refuse it ends with the remedy.
	Message string
}

// Plan is what to do about one definition, and why. The first step is the decision; CarryOver and Migrate may follow.
type Plan struct {
	Steps []Step
	// NeedsObjects says that somebody must look at the objects before the plan is carried out: it changes something that could touch them.
	NeedsObjects bool
	// Harm is what is known of the objects an update would meet; nil if nobody had to look.
	Harm *Objects
	// Stored is what status.storedVersions has to become, for Mark.
	Stored []string
	// Target is the definition to apply, for Create and Update; for Mark, that which comes after it; for a refusal because of objects, that
	// which would harm them. Except for Create it carries the resourceVersion and UID of the object the decision was made on, and the versions
	// objects are still stored in.
	Target *apiextensionsv1.CustomResourceDefinition
}

// Decision returns the first step.
func (p Plan) Decision() Step { return p.Steps[0] }

// Does says whether the plan has such a step.
func (p Plan) Does(action Action) bool {
	return slices.ContainsFunc(p.Steps, func(step Step) bool { return step.Action == action })
}

// Objects is what is known of the custom resources an update would meet.
type Objects struct {
	// Seen is how many were looked at, Harmed how many would lose something or become invalid.
	Seen, Harmed int
	// Findings are the first of the harmed, sorted by namespace and name.
	Findings []Finding
	// Namespaces are the only ones looked at; nil means all.
	Namespaces []string
}

// Finding is what an update would do to one object.
type Finding struct {
	Namespace, Name string
	// Lost are the paths of the fields the new schema would drop.
	Lost []string
	// Invalid is what the new schema would refuse, in the API server's words.
	Invalid []string
}

// String says it in a line.
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

// ObjectChecker looks at existing objects before an update.
type ObjectChecker interface {
	// Check finds out what would become of the objects of the existing definition under the target.
	Check(ctx context.Context, existing, target *apiextensionsv1.CustomResourceDefinition) (Objects, error)
}
