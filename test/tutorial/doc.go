// Package tutorial follows docs/adding-a-kind.md: it pastes every block into a shell, as a reader does, and compares what comes out.
package tutorial
