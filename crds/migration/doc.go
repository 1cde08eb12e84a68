// Package migration rewrites the objects of a custom resource in the version that is for storing, and then says so in status.storedVersions
// of its definition: only after that may the versions they were stored in be dropped
// (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#upgrade-existing-objects-to-a-new-stored-version).
//
//	Needed    pure: does status.storedVersions name more than the version for storing?
//	settle    wait until every API server must have seen the definition
//	walk      list the metadata in pages, rewrite each object, remember now and then how far it is
//	trim      status.storedVersions becomes the version for storing, if nothing changed meanwhile
//
// How an object is rewritten: a merge patch without content. It has nothing that could overwrite an edit made at the same time; the API
// server reads the object, converts it, sees that what would be stored differs from what is stored, and writes. Neither generation nor
// managedFields change, only the resourceVersion. Stored in the right version already, it is not written at all.
//
// managedFields names for each manager of fields the API version it wrote them in. Once a version is gone from the definition, the API
// server cannot compare an object with what was written in that version: each server-side apply fails, whoever applies, and up to
// Kubernetes 1.36 the next other write loses managedFields as a whole (https://github.com/kubernetes/kubernetes/issues/111937). So entries
// of versions that are not served any more are told in the version for storing while the API server still knows both: renamed where
// versions differ by name only (conversion strategy None), dropped where a webhook restructures objects. That patch carries the
// resourceVersion it was made for, and is made anew when somebody was faster.
//
// What holds, whatever happens:
//
//   - An object whose rewriting is not certain keeps its version in status.storedVersions.
//   - Killed between any two requests, the next run goes on behind the last object known to be done, as long as the definition is the
//     same one (UID), unchanged (generation) and stores in the same version.
//   - Two that migrate at once do the same work twice, harmlessly.
//   - A version that goes must be unserved first and be in status.storedVersions, also if nothing is stored in it any more: that is what
//     asks for a last migration, which rids managedFields of it.
//   - Objects made meanwhile need no care: the API server stores them in the right version.
package migration
