//go:build !storedv2

package twoversions

// What the definition says: v1 is stored, as before.
const (
	storedVersion = "v1"
	schemaVersion = "1000"
)
