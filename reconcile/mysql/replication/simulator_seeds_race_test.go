//go:build race

package replication

// defaultSeeds is less with the race detector, which makes everything slower and finds nothing more in decisions that share nothing.
const defaultSeeds = 200
