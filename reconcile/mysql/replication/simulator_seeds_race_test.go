//go:build race

package replication

// defaultSeeds is lower with the race detector: it makes everything slower, and finds nothing more in decisions that share no data.
const defaultSeeds = 200
