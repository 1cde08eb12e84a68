//go:build !race

package replication

// defaultSeeds takes a few seconds.
const defaultSeeds = 2000
