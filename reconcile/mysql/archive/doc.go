// Package archive defines the format of physical copies of a data directory, and stores and reads them.
//
//	clone.Sink calls ─▶ Writer: tar ─▶ chunks ─▶ zstd ─▶ (age) ─▶ parts ─▶ Store (folder of a bucket, or directory)
//	                                                                        manifest.json, written last, makes it a backup
//	clone.Sink calls ◀─ Extract ◀──────────────────────────────────────────  Load
//
// The stages read, compress, hash, encrypt and store concurrently. Bounded queues join them, so that the memory they take does not depend
// on the size of the backup. docs/backup-format.md describes the format; tar, zstd and age can read it.
//
// Rules of this package:
//   - A folder is a backup if and only if it has an intact manifest. The Writer stores the manifest after everything it names. Remove
//     deletes the manifest before anything it names.
//   - A folder belongs to the instance that its marker, or its manifest, names. No other instance writes or deletes there.
//   - No data is used before it was checked against the manifest: sizes, SHA-256 of each part, checksum of each chunk, names.
package archive
