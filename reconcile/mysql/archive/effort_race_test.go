//go:build race

package archive

// The race detector makes compression and encryption ten times slower. What these repetitions prove has nothing to do with races:
// make test repeats them in full without it.
const (
	randomCopies  = 8
	harmsPerFile  = 1
	requestStride = 5
	withRace      = true
)
