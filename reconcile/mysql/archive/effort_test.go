//go:build !race

package archive

const (
	// randomCopies is how many random copies are backed up and extracted.
	randomCopies = 60
	// harmsPerFile is how often a file is harmed in each way.
	harmsPerFile = 6
	// requestStride is the distance between two requests at which a fault is tried: 1 tries all.
	requestStride = 1
	// withRace says that the race detector slows down what tests need another program for: these run without it.
	withRace = false
)
