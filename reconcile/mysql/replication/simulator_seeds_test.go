//go:build !race

package replication

const (
	// defaultSeeds and defaultPairs take less than a minute together.
	defaultSeeds = 20_000
	defaultPairs = 500
)
