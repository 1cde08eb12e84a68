//go:build storedv2

package twoversions

// What the definition says one release later: v2 is stored.
const (
	storedVersion = "v2"
	schemaVersion = "1001"
)
