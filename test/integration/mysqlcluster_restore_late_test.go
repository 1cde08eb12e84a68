package integration

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile"
)

// pause holds up one read of an object, so that a test can change objects in the middle of an operator's pass.
type pause struct {
	path        string
	isDue       atomic.Bool
	begun, over chan struct{}
}

func newPause(path string) *pause {
	return &pause{path: path, begun: make(chan struct{}), over: make(chan struct{})}
}

// slow has an operator read the object through the pause. Its passes may take longer than a test waits.
func (p *pause) slow(config *reconcile.Config) {
	config.PassTimeout = 2 * patience
	config.Rest.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, p.path) && p.isDue.CompareAndSwap(true, false) {
				close(p.begun)
				select {
				case <-p.over:
				case <-request.Context().Done():
					return nil, request.Context().Err()
				}
			}
			return next.RoundTrip(request)
		})
	})
}

// during makes a change while the operator's next read of the object waits.
func (p *pause) during(t *testing.T, change func()) {
	t.Helper()
	p.isDue.Store(true)
	soon(t, func(context.Context) string {
		select {
		case <-p.begun:
			return ""
		default:
			return "the operator has not read " + p.path
		}
	})
	change()
	close(p.over)
}

// endsMeanwhile makes a change in the middle of a pass, and then deletes the Job of the restore and these claims. It returns the operator.
// The pass has the cluster as it was before the change, and finds neither the Job nor its Pod.
func (v *vault) endsMeanwhile(t *testing.T, change func(), claims ...string) *operating {
	t.Helper()
	v.nightly(t)
	reading := newPause("/persistentvolumeclaims/data-db-0")
	o := v.operate(t, reading.slow)
	v.apply(t, "db", "secret: root, fromBackup: nightly")
	pod := v.pod(t, "db")
	reading.during(t, func() {
		change()
		v.remove(t, "jobs", "db-restore")
		v.gone(t, "pods", pod)
		for _, claim := range claims {
			v.remove(t, "persistentvolumeclaims", claim)
			v.gone(t, "persistentvolumeclaims", claim)
		}
	})
	return o
}

// madeOnce fails the test unless an operator has made one claim, one Job that restores, and one that asks the image for its version.
func (v *vault) madeOnce(t *testing.T, o *operating) {
	t.Helper()
	for where, want := range map[string]int{"/apis/batch/v1/namespaces/" + v.namespace + "/jobs": 2, "/api/v1/namespaces/" + v.namespace + "/persistentvolumeclaims": 1} {
		if made := count(o.wire.written(), "POST "+where); made != want {
			t.Errorf("the operator made %d objects at %s, want %d", made, where, want)
		}
	}
}

// TestMySQLClusterRestoreSeenTooLate ends a restore in the middle of an operator's pass. The pass has read the cluster before, and finds no
// Job, or no claim either. Only a second, live read of the cluster shows that the operator must not make another one.
func TestMySQLClusterRestoreSeenTooLate(t *testing.T) {
	t.Parallel()
	sideBySide(t, 2, map[string]func(*testing.T){
		"another operator has completed it": func(t *testing.T) {
			v := newVault(t)
			o := v.endsMeanwhile(t, func() {
				v.putOn(v.get(t, "persistentvolumeclaims", "data-db-0").GetUID(), "db-0")
				v.patch(t, "mysqlclusters", "db", `{"status":{"restore":{"phase":"Completed"}}}`, "status")
			})
			v.fromTheBackup(t, v.settled(t, "db"))
			v.onceRestored(t, 1)
			v.madeOnce(t, o)
		},
		"the user has given it up, and deleted the volume": func(t *testing.T) {
			v := newVault(t)
			o := v.endsMeanwhile(t, func() { v.apply(t, "db", "secret: root") }, "data-db-0")
			v.until(t, "db", "RestoreFailed")
			v.madeOnce(t, o)
		},
	})
}
