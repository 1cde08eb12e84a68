// Package integration tests the operator's parts against a real API server and etcd.
package integration

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// pool owns the control plane that these tests share: starting one takes ten seconds.
var pool apiserver.Pool //nolint:gochecknoglobals // TestMain cannot hand anything to tests

func TestMain(m *testing.M) {
	pool.Run(m)
}
