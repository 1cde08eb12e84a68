// Package crds brings a program's definitions to the API server at boot, and looks after them while it runs. It knows nothing of the
// program but its Identity.
//
//	Identity.Parse   the YAML, stamped with an order (schema-version), its content (schema-hash), and a mark in what is printed
//	Decide           pure: what the cluster has + what we bring + what the objects are → a Plan, and why
//	Installer        at boot: decide → server-side apply → look again → wait until the schema is in force
//	Guard            afterwards, in every replica: watch → decide → heal, or say why not
//	Leader           one replica: have stored objects migrated, note whether there are any
//
// crds/objects looks at objects before an update, crds/migration rewrites them, crds/conversion serves the conversion webhook.
//
// What holds, whatever happens:
//
//   - Nothing is ever deleted or unregistered: with a definition all its objects would go.
//   - Only definitions that carry our mark (label app.kubernetes.io/managed-by) are changed, or those we are asked to adopt. Others are
//     used if they serve what we need.
//   - Definitions only move forward: an older program, one that restarts in the middle of a rollout say, leaves a newer definition alone.
//     The order comes from schema-version; equality from the content, so a forgotten bump of the order still upgrades.
//   - Two programs that boot at once may do the same work twice, harmlessly: each update carries the resourceVersion it was decided on. A
//     creation cannot be bound to there being nothing; it is sent once, and after it, as after each write, the decision is made again.
//   - Versions that objects are stored in, or that clients may have used, stay in the definition, unserved, until the objects are migrated
//     (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#upgrade-existing-objects-to-a-new-stored-version).
//   - Every wait is bounded and says what it waited for.
package crds
