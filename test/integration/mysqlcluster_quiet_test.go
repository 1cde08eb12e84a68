package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// quietTime is for how long operators are watched at rest: two of the rounds that they make over a cluster that is as it should be.
const quietTime = 30 * time.Second

// restful waits until operators have not written for a while, which it bounds, and fails the test if they write after that.
func (p *place) restful(t *testing.T, operators ...*operating) {
	t.Helper()
	total := func() (writes int, all []string) {
		for _, o := range operators {
			all = append(all, o.wire.written()...)
		}
		return len(all), all
	}
	// What the last change set in motion, such as Kubernetes' own controllers' status, may take its time on a busy machine.
	last, since := 0, time.Now()
	soon(t, func(context.Context) string {
		if now, _ := total(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < 5*time.Second {
			return fmt.Sprintf("there were %d writes, and still more", last)
		}
		return ""
	})

	passes := make([]float64, len(operators))
	for index, o := range operators {
		passes[index] = o.passes(t)
	}
	timer := time.NewTimer(quietTime)
	defer timer.Stop()
	<-timer.C
	if now, all := total(); now != last {
		t.Errorf("at rest there were writes: %v", all[last:])
	}
	for index, o := range operators {
		if o.passes(t) < passes[index]+2 {
			t.Errorf("operator %d has not looked at the clusters meanwhile: its rest proves nothing", index)
		}
	}
}

// TestMySQLClusterSurvivesARestartUnwritten starts another operator where a cluster is as it should be: it looks, and writes nothing.
func TestMySQLClusterSurvivesARestartUnwritten(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	before.restful(t)
	before.finish(t)

	after := s.operate(t, nil)
	soon(t, func(context.Context) string {
		if after.passes(t) == 0 {
			return "the new operator has not looked at the cluster"
		}
		return ""
	})
	after.restful(t)
	if writes := after.wire.written(); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
}

// TestTheOperatorKeepsNoConnectionsAtRest: it looks at members whose alarms arrive once in minutes. Connections of many clusters that stay
// open meanwhile take much memory.
func TestTheOperatorKeepsNoConnectionsAtRest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3")
	s.settled(t, "db")
	closed := func(after string) {
		t.Helper()
		soonWithin(t, 30*time.Second, func(context.Context) string {
			s.node.network.mu.Lock()
			defer s.node.network.mu.Unlock()
			if open := s.node.network.open; open > 0 {
				return fmt.Sprintf("after %s, %d connections are open", after, open)
			}
			return ""
		})
	}
	ended := o.restful(t)
	soon(t, func(context.Context) string {
		if now := o.passes(t); now < ended+2 {
			return fmt.Sprintf("%v of 2 passes at rest have ended, so the next one may be a whole pass", now-ended)
		}
		return ""
	})
	s.node.network.mu.Lock()
	if s.node.network.open == 0 {
		t.Error("without alarms, the operator keeps no connections either")
	}
	s.node.network.alarmsArrive = true
	s.node.network.mu.Unlock()
	closed("a look at members")
	s.apply(t, "db", "secret: root, replicas: 3, failover: {notReadySeconds: 20}")
	s.settled(t, "db")
	closed("a whole pass")
}

// outage is for how long the API server is away.
const outage = 15 * time.Second

// TestMySQLClusterOnAControlPlaneOfItsOwn has bad days that would be everybody's on a shared one.
func TestMySQLClusterOnAControlPlaneOfItsOwn(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	s := newSiteOn(t, apiserver.Own(t))
	o := s.operate(t, s.elected)
	t.Run("no default StorageClass", func(t *testing.T) { s.withoutStorageClass(t) }) //nolint:paralleltest // one bad day after the other
	t.Run("the API server is gone", func(t *testing.T) { s.withoutAPIServer(t, o) })  //nolint:paralleltest // one bad day after the other
}

func (s *site) withoutStorageClass(t *testing.T) {
	t.Helper()
	byDefault := func(is string) {
		annotation := fmt.Sprintf(`{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":%q}}}`, is)
		_, err := s.Dynamic.Resource(childResource("storageclasses")).Patch(t.Context(), "standard", types.MergePatchType, []byte(annotation), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	byDefault("false")
	s.apply(t, "classless", "secret: root")
	s.stalled(t, s.until(t, "classless", "NoDefaultStorageClass"), "no default StorageClass", "make one the default", "spec.storageClassName")

	t.Log("a cluster that names its class needs no default")
	s.apply(t, "classy", "secret: root, replicas: 1, storageClassName: standard")
	s.ready(t, "classy")

	byDefault("true")
	s.settled(t, "classless")
	s.node.podsOnce(t, "classless", 2)
}

func (s *site) withoutAPIServer(t *testing.T, o *operating) {
	t.Helper()
	s.apply(t, "db", "secret: root, replicas: 3")
	before := s.settled(t, "db")
	children := s.picture(t, "db")
	errors := len(o.log.all())

	s.Kill(t)
	timer := time.NewTimer(outage)
	defer timer.Stop()
	<-timer.C
	s.Restart(t)

	t.Log("the operator continues where it stopped")
	s.patch(t, "services", "db", `{"spec":{"selector":{"statefulset.kubernetes.io/pod-name":"elsewhere"}}}`)
	soon(t, func(context.Context) string { return cmp.Diff(children, s.picture(t, "db")) })
	after := s.settled(t, "db")
	same(t, after.Status, before.Status)
	s.node.podsOnce(t, "db", 3)
	// Each watch may say once a minute what is wrong with it, the passes together once a minute, the election at its begin and end.
	if told := o.log.all()[errors:]; len(told) > 12 {
		t.Errorf("an outage is told more often than is of use: %v", told)
	}
}
