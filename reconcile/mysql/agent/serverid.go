package agent

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
)

// firstPlainID is the server_id of member 0 if the volume cannot store one. The other members count on from it, so that the members of a
// cluster still differ.
const firstPlainID = 100

// chooseServerID returns the member's server_id. If the volume has no space to store one, the server_id is for this start only: mysqld must
// run for a user to free space.
func chooseServerID(layout Layout, ordinal int, tell io.Writer) (uint32, error) {
	chosen, err := keepServerID(layout, ordinal)
	if !isFull(err) {
		return chosen, err
	}
	chosen = firstPlainID + uint32(ordinal) //nolint:gosec // the schema bounds it by 8
	fmt.Fprintf(tell, "mysql-operator: server_id is %d for this start only, because the volume is full: %v\n", chosen, err)
	return chosen, nil
}

// ordinalBits of a server_id are the member's number, so that members of one cluster always differ. The other bits are random.
const ordinalBits = 5

// keepServerID returns the member's server_id, which must differ between all servers that ever replicate from each other (manual,
// "server_id"). It is chosen once. A replica outside of the cluster applies no transactions with its own server_id, unless it sets
// replicate_same_server_id as members do.
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
