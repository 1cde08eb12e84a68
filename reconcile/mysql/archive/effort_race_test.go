//go:build race

package archive

// The race detector makes compression and encryption ten times slower. These repetitions do not test for races: make test repeats them in
// full without it.
const (
	randomCopies  = 8
	harmsPerFile  = 1
	requestStride = 5
	withRace      = true
)
