package e2e

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestPrimaryLosesItsVolume: an empty primary must neither serve nor be copied to the others; the data of the replica is kept and can be
// adopted.
func TestPrimaryLosesItsVolume(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	p := newPlace(t)
	p.start(2)
	p.exec(p.open(p.cluster, p.password), "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (1), (2)")
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT COUNT(*) FROM shop.orders", "2", answerLimit)

	p.run("delete", "pvc", "data-"+p.cluster+"-0", "-n", p.namespace, "--wait=false")
	p.run("delete", "pod", p.cluster+"-0", "-n", p.namespace)
	p.waitReady("False PrimaryDataLost member "+p.cluster+"-0 is the primary on record but came back with an empty volume", changeLimit)
	if endpoints := p.run("get", "endpointslices", "-n", p.namespace, "-l", "kubernetes.io/service-name="+p.cluster, "-o", "jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses}"); endpoints != "" {
		t.Errorf("the write Service leads to an empty database at %s", endpoints)
	}
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT COUNT(*) FROM shop.orders", "2", answerLimit)

	t.Log("deleted and applied again, the cluster adopts the replica's data")
	p.run("delete", "mysqlcluster", p.cluster, "-n", p.namespace)
	p.start(2)
	p.waitValue(p.open(p.cluster, p.password), "SELECT COUNT(*) FROM shop.orders", "2", answerLimit)
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT COUNT(*) FROM shop.orders", "2", answerLimit)
}
