//go:build !race

package archive

const (
	// randomCopies is the number of random copies that are backed up and extracted.
	randomCopies = 60
	// harmsPerFile is how often each kind of damage is done to a file.
	harmsPerFile = 6
	// requestStride is the distance between two requests that get a fault: 1 tries all.
	requestStride = 1
	// withRace reports whether the race detector is on. Tests that need another program run only without it.
	withRace = false
)
