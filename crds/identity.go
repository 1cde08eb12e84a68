package crds

// OwnerLabel marks a definition as somebody's to change: the label of Kubernetes' recommended set that names the tool that manages an
// object (https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/). Setting it to Identity.Owner hands a
// definition over to the operator.
const OwnerLabel = "app.kubernetes.io/managed-by"

// Identity is whose definitions they are.
type Identity struct {
	// Owner is the value of OwnerLabel on the operator's definitions, and the beginning of its field managers' names.
	Owner string
	// Domain is the DNS domain of the annotations the operator puts on definitions.
	Domain string
}

// VersionAnnotation holds the order of a definition: a whole number that rises with every release that changes it. It is written in the
// YAML, beside the schema it counts.
func (i Identity) VersionAnnotation() string { return i.Domain + "/schema-version" }

// HashAnnotation holds the sha256 of the spec a program brought, in hexadecimal. It is computed, never written by hand.
func (i Identity) HashAnnotation() string { return i.Domain + "/schema-hash" }

// AppliedAnnotation holds the sha256 of the spec as it was applied, with what was carried over: where it no longer fits, somebody edited
// the definition afterwards.
func (i Identity) AppliedAnnotation() string { return i.Domain + "/applied-hash" }

// CarriedAnnotation lists, comma-separated, the versions that were carried over for their stored objects' sake: once nothing is stored in
// them they can be dropped.
func (i Identity) CarriedAnnotation() string { return i.Domain + "/carried-over" }

// UsageAnnotation says whether the definition has objects: UsageSome, or UsageNone. Where it is missing nobody knows.
func (i Identity) UsageAnnotation() string { return i.Domain + "/objects" }

// DeletionAnnotation is, with the value "true", a person's word that the definition may be deleted with all its objects.
func (i Identity) DeletionAnnotation() string { return i.Domain + "/allow-deletion" }

// MigrationAnnotation holds how far the rewriting of stored objects has come.
func (i Identity) MigrationAnnotation() string { return i.Domain + "/migrated-up-to" }

// FieldManager owns, in server-side apply, what the operator brings with a definition.
func (i Identity) FieldManager() string { return i.Owner + "-crds" }

// UsageManager owns UsageAnnotation.
func (i Identity) UsageManager() string { return i.Owner + "-crds-usage" }

// The values of UsageAnnotation.
const (
	UsageNone = "none"
	UsageSome = "some"
)
