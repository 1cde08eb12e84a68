// Package crds installs a program's definitions in the API server at boot, and maintains them while the program runs. All that it knows of
// the program is its Identity.
//
//	Identity.Parse   the YAML, stamped with an order (schema-version), its content (schema-hash), and a mark in the printed columns
//	Decide           pure: the cluster's definition + the program's definition + the state of the objects → a Plan, and why
//	Installer        at boot: decide → server-side apply → read again → wait until the schema is in force
//	Guard            afterwards, in every replica: watch → decide → repair, or report why not
//	Leader           one replica: start the migration of stored objects, record whether there are any
//
// crds/objects checks objects before an update, crds/migration rewrites them, crds/conversion serves the conversion webhook.
//
// The following always holds:
//
//   - This package never deletes or unregisters a definition: the API server would delete all its objects.
//   - It changes only definitions that carry the program's mark (label app.kubernetes.io/managed-by), or that the program is asked to
//     adopt. It uses other definitions if they serve what the program needs.
//   - Definitions only move forward. An older program does not change a newer definition, for example when it restarts during a rollout.
//     schema-version gives the order. The content decides equality, so an upgrade works even if the order was not raised.
//   - Two programs that boot at once may do the same work twice, harmlessly: each update carries the resourceVersion it was decided on. A
//     creation has no such precondition. It is sent once, and after it, as after each write, the package decides again.
//   - Versions that objects are stored in, or that clients may have used, stay in the definition, unserved, until the objects are migrated
//     ("Upgrade existing objects to a new stored version" in
//     https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/).
//   - Every wait is bounded, and its error says what it waited for.
package crds
