// Package crds brings the definitions of the operator's kinds to the API server at boot, before anything else runs.
//
//	Load     the embedded YAML, stamped with an order (schema-version) and an identity (schema-hash)
//	Decide   pure: what the cluster has + what we bring → Create, Update, Keep, Wait or Refuse, and why
//	Ensure   decide → server-side apply with the resourceVersion decided on → look again → wait until really served
//
// What holds, whatever happens:
//
//   - Nothing is ever deleted or unregistered: with a definition all its objects would go.
//   - Only definitions that carry our mark (label app.kubernetes.io/managed-by) are changed. Others are used if they serve what we need.
//   - Definitions only move forward: an older operator, one that restarts in the middle of a rollout say, leaves a newer definition alone.
//     The order comes from schema-version; equality from the content, so a forgotten bump of the order still upgrades.
//   - Two operators that boot at once may do the same work twice, harmlessly: each write carries the resourceVersion it was decided on,
//     and after each write the decision is made again on what is there then.
//   - Versions that objects are still stored in stay in the definition, unserved, as the API server demands
//     (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#upgrade-existing-objects-to-a-new-stored-version).
//   - Every wait is bounded and says what it waited for.
package crds
