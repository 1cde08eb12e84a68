// Package archive keeps physical copies of a data directory: their format and the places where they are stored.
//
//	clone.Sink calls ─▶ Writer: tar ─▶ chunks ─▶ zstd ─▶ (age) ─▶ parts ─▶ Store (folder of a bucket, or directory)
//	                                                                        manifest.json, written last, makes it a backup
//	clone.Sink calls ◀─ Extract ◀──────────────────────────────────────────  Load
//
// What a stage reads, compresses, hashes, encrypts and stores runs side by side, joined by bounded queues: the memory it takes does
// not depend on the size of the backup. The format is described in docs/backup-format.md; a person can read it with tar, zstd and age.
//
// Rules that everything here keeps:
//   - A folder is a backup when, and only when, it has a manifest that is intact. The manifest is written after everything it names
//     has been stored, and is removed before anything it names.
//   - A folder belongs to the instance that its marker, or its manifest, names. Nobody else writes or deletes there.
//   - Nothing that was read is used without having been checked against the manifest: sizes, SHA-256 of each part, checksum of each
//     chunk, names.
package archive
