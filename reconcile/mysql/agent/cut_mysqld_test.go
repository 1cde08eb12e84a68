package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestAnAgentThatDiesDuringACutMysqld: the next agent finds what is left, and the member loses nothing that must be kept. It cuts again, or
// the member is copied.
func TestAnAgentThatDiesDuringACutMysqld(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	for name, test := range map[string]struct {
		dropsUUID, isCopied bool
	}{
		"after it has kept a copy":             {false, false},
		"after it has dropped the server_uuid": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replacedMember(t, nil, "INSERT INTO shop.orders VALUES (2)")
			fence(t, r.former)
			follow := r.takesOver(t)
			r.beginsToCut(t, test.dropsUUID)
			r.former.obeys(t, follow)
			if test.isCopied {
				r.former.isCopied(t)
				follow.Record.Revision++
				r.former.obeys(t, follow)
			}
			r.follows(t, 1)
		})
	}
}

// beginsToCut takes the first steps of a cut (Agent.cut).
func (r replacement) beginsToCut(t *testing.T, dropsUUID bool) {
	t.Helper()
	a, next := r.former.agent, r.next.agent.Status()
	has := next.Executed.Union(next.Pending)
	release, err := a.lockData()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	file, err := a.layout.openLastLog(os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tail, err := readTail(t.Context(), file, has)
	if err != nil || tail.GTIDs.Count() != 1 {
		t.Fatalf("the tail has %s: %v", tail.GTIDs, err)
	}
	own, err := a.layout.ownTail(tail, has)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.keepTail(filepath.Base(file.Name()), tail, own); err != nil {
		t.Fatal(err)
	}
	if !dropsUUID {
		return
	}
	if err := a.layout.dropServerUUID(); err != nil {
		t.Fatal(err)
	}
}
