package e2e

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestPrimaryLosesItsVolume: an empty primary neither serves nor is copied to the others. The replica has every acknowledged write and
// takes over, and the former primary becomes its replica.
func TestPrimaryLosesItsVolume(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	p := newPlace(t)
	p.start(2)
	w := p.startWriter()
	p.goesOn(w)

	p.run("delete", "pvc", "data-"+p.cluster+"-0", "-n", p.namespace, "--wait=false")
	p.deletePod(p.cluster + "-0")
	p.leads(1, 2)
	p.hasEvent("ReplacingPrimary", p.cluster+"-0 is the primary on record but came back with an empty volume")
	p.goesOn(w)
	p.settled(2)
	w.end()
	db := p.open(p.cluster, p.password)
	p.nothingLost(w, db)

	t.Log("the former primary has all of it, too")
	p.replicaHasAll(db)
}
