// Package migration rewrites the objects of a custom resource in the storage version, and then trims status.storedVersions of the
// definition. Only after that may the definition drop the versions that the objects were stored in
// ("Upgrade existing objects to a new stored version" in
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/).
//
//	Needed    pure: does status.storedVersions name more than the storage version?
//	settle    wait until every API server must have seen the definition
//	walk      list the metadata in pages, rewrite each object, save the progress from time to time
//	trim      set status.storedVersions to the storage version, if the definition did not change meanwhile
//
// The package rewrites an object with a merge patch without content. Such a patch cannot overwrite an edit made at the same time. The API
// server reads the object, converts it, compares the result with the stored object, and writes if they differ. Neither generation nor
// managedFields change, only the resourceVersion. An object that is already stored in the right version is not written.
//
// managedFields names for each field manager the API version that it wrote in. After a version is removed from the definition, the API
// server cannot compare an object with what was written in that version. Then each server-side apply fails, by whatever client, and up to
// Kubernetes 1.36 the next other write drops managedFields as a whole (https://github.com/kubernetes/kubernetes/issues/111937). So the
// package translates entries of versions that are no longer served to the storage version, while the API server still knows both. It
// renames them if versions differ only in their names (conversion strategy None), and drops them if a webhook restructures objects. That
// patch carries the resourceVersion it was made for. If another client wrote first, the package makes the patch again.
//
// The following always holds:
//
//   - If it is not certain that an object was rewritten, its version stays in status.storedVersions.
//   - A run may be killed between any two requests. The next run continues after the last object known to be done, if the definition is the
//     same (UID), unchanged (generation) and has the same storage version.
//   - Two migrations at once do the same work twice, harmlessly.
//   - Before a version is removed, it must be unserved and be in status.storedVersions, even if no object is stored in it any more. This
//     causes a last migration, which removes the version from managedFields.
//   - Objects created meanwhile need no rewriting: the API server stores them in the right version.
package migration
