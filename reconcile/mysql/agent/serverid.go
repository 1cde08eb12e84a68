package agent

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
)

// firstPlainID is member 0's server_id where none can be kept; the others count on from it, so that members of one cluster differ all the
// same.
const firstPlainID = 100

// chooseServerID returns the member's server_id. Where the volume has no room to keep one, it is one for this start: mysqld has to run for
// somebody to make room.
func chooseServerID(layout Layout, ordinal int, tell io.Writer) (uint32, error) {
	chosen, err := keepServerID(layout, ordinal)
	if !isFull(err) {
		return chosen, err
	}
	chosen = firstPlainID + uint32(ordinal) //nolint:gosec // the schema bounds it by 8
	fmt.Fprintf(tell, "mysql-operator: server_id is %d for this start, and another one from the next on: the volume is full: %v\n", chosen, err)
	return chosen, nil
}

// ordinalBits of a server_id are the member's number, so that members of one cluster always differ; the others are random.
const ordinalBits = 5

// keepServerID returns the member's server_id, which must differ in everything that ever replicates from each other (manual, "server_id").
// It is chosen once: a server takes what has its own for what it wrote itself, and applies none of it, also when binary logs come back from
// an archive or from another cluster's member.
func keepServerID(layout Layout, ordinal int) (uint32, error) {
	kept, _, err := loadState(layout.stateFile())
	if err != nil {
		return 0, err
	}
	own := uint32(ordinal) + 1 //nolint:gosec // the schema bounds it by 8
	if kept.ServerID != 0 && kept.ServerID&(1<<ordinalBits-1) == own {
		return kept.ServerID, nil
	}
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return 0, fmt.Errorf("choose a server_id: %w", err)
	}
	kept.ServerID = binary.BigEndian.Uint32(random[:])<<ordinalBits | own
	return kept.ServerID, saveAtStart(layout, kept)
}
