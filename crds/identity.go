package crds

// OwnerLabel says which tool manages a definition and may change it. It is one of Kubernetes' recommended labels
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/). A user who sets it to Identity.Owner lets the
// operator manage the definition.
const OwnerLabel = "app.kubernetes.io/managed-by"

// Identity identifies the program that definitions belong to.
type Identity struct {
	// Owner is the value of OwnerLabel on the operator's definitions, and the prefix of its field managers' names.
	Owner string
	// Domain is the DNS domain of the annotations that the operator writes on definitions.
	Domain string
}

// VersionAnnotation holds the order of a definition: a whole number that rises with every release that changes the definition. It is
// written in the YAML, next to the schema.
func (i Identity) VersionAnnotation() string { return i.Domain + "/schema-version" }

// HashAnnotation holds the sha256 of the spec that a program has, in hexadecimal. It is computed, never written by hand.
func (i Identity) HashAnnotation() string { return i.Domain + "/schema-hash" }

// AppliedAnnotation holds the sha256 of the spec as it was applied, with carried-over versions. If the spec has another hash, a client
// edited the definition afterwards.
func (i Identity) AppliedAnnotation() string { return i.Domain + "/applied-hash" }

// CarriedAnnotation lists, comma-separated, the versions that were carried over because of stored objects. When no object is stored in them
// any more, they can be dropped.
func (i Identity) CarriedAnnotation() string { return i.Domain + "/carried-over" }

// UsageAnnotation reports whether the definition has objects: UsageSome or UsageNone. If it is missing, this is unknown.
func (i Identity) UsageAnnotation() string { return i.Domain + "/objects" }

// DeletionAnnotation is how a user permits to delete the definition with all its objects: its value is "true".
func (i Identity) DeletionAnnotation() string { return i.Domain + "/allow-deletion" }

// MigrationAnnotation holds the progress of the migration of stored objects.
func (i Identity) MigrationAnnotation() string { return i.Domain + "/migrated-up-to" }

// FieldManager owns the fields of a definition that the operator applies.
func (i Identity) FieldManager() string { return i.Owner + "-crds" }

// UsageManager owns UsageAnnotation.
func (i Identity) UsageManager() string { return i.Owner + "-crds-usage" }

// The values of UsageAnnotation.
const (
	UsageNone = "none"
	UsageSome = "some"
)
