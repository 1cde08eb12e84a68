// Package integration tests the operator's parts against a real API server and etcd.
package integration

import (
	"flag"
	"testing"

	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// pool owns the control plane that these tests share: starting one takes ten seconds.
var pool apiserver.Pool //nolint:gochecknoglobals // TestMain cannot hand anything to tests

// atATime is how many tests run at once unless -parallel says otherwise. They mostly wait for rounds, leases and API servers; go test would
// run as many as the machine has cores.
const atATime = "5"

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", atATime) // never fails: the flag is there; arguments are read later and win
	pool.Run(m)
}
