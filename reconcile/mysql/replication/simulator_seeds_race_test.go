//go:build race

package replication

// These are lower with the race detector: it makes everything slower, and finds nothing more in decisions that share no data.
const (
	defaultSeeds = 200
	defaultPairs = 20
)
