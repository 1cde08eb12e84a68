//go:build !race

package archive

const (
	// randomCopies is how many random copies are backed up and extracted.
	randomCopies = 60
	// harmsPerFile is how often a file is harmed in each way.
	harmsPerFile = 6
	// requestStride is the distance between two requests at which a fault is tried: 1 tries all.
	requestStride = 1
	// gatewayStride is the same for the backups to a real S3 server, which are larger.
	gatewayStride = 1
)
