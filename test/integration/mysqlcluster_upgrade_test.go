package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const upgradeBlocked = "UpgradeBlocked"

// images are those of a cluster's mysqlds, in the order of its members.
func (s *site) images(t *testing.T, cluster string, members int) string {
	t.Helper()
	var images []string
	for number := range members {
		containers, _, _ := unstructured.NestedSlice(s.get(t, "pods", fmt.Sprintf("%s-%d", cluster, number)).Object, "spec", "containers")
		for _, one := range containers {
			if container, ok := one.(map[string]any); ok && container["name"] == "mysqld" {
				images = append(images, fmt.Sprint(container["image"]))
			}
		}
	}
	return strings.Join(images, " ")
}

// upgraded fails the test unless all members have an image, the primary is member 0, and nothing keeps the next update from it.
func (s *site) upgraded(t *testing.T, cluster, image string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		now, err := s.cluster(ctx, cluster)
		told := meta.FindStatusCondition(now.Status.Conditions, upgradeBlocked)
		if err != nil || told != nil || now.Status.Version != strings.TrimPrefix(image, "mysql:")+".6" || now.Status.Primary != cluster+"-0" {
			return fmt.Sprintf("the status is %+v (%v)", now.Status, err)
		}
		return ""
	})
	s.settled(t, cluster)
	if got := s.images(t, cluster, 3); got != strings.Join([]string{image, image, image}, " ") {
		t.Errorf("the images are %s", got)
	}
	if partition := partitionOf(s.get(t, "statefulsets", cluster)); partition != 0 {
		t.Errorf("it is over, and the partition is %d", partition)
	}
}

// TestMySQLClusterKeepsAnUpgradeFromItsPrimary while accounts could not log in with it, and begins none that a member could not follow.
func TestMySQLClusterKeepsAnUpgradeFromItsPrimary(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	o := v.operate(t, nil)
	v.apply(t, "db", "secret: root, replicas: 3, image: 'mysql:8.4'")
	v.settled(t, "db")

	t.Log("the replicas have it, an account could not log in, and nothing happens any more")
	app := replication.Account{User: "app", Host: "%", Plugin: "mysql_native_password"}
	v.node.bar("9.7.6", app)
	v.apply(t, "db", "secret: root, replicas: 3, image: 'mysql:9.7'")
	blocked := v.until(t, "db", upgradeBlocked)
	update, _, _ := unstructured.NestedString(v.get(t, "statefulsets", "db").Object, "status", "updateRevision")
	command := fmt.Sprintf("kubectl -n %s annotate mysqlcluster db %s=%s --overwrite", v.namespace, mysqlcluster.AnnotationRestartPrimary, update)
	v.stalled(t, blocked, "held back from the primary db-0", "has MySQL 9.7", `"app"@"%" ("mysql_native_password")`, "no way back to MySQL 8.4", command)
	if got := v.images(t, "db", 3); got != "mysql:8.4 mysql:9.7 mysql:9.7" || blocked.Status.Version != "8.4.6" {
		t.Errorf("the images are %s, and the primary has %s", got, blocked.Status.Version)
	}
	v.restful(t, o)

	t.Log("the primary's Pod is lost, and comes back as it was")
	v.remove(t, "pods", "db-0")
	v.comesAgain(t, "db", "db-0")
	v.until(t, "db", upgradeBlocked)
	if made, got := v.made("db"), v.images(t, "db", 1); made != [3]int{2, 2, 2} || got != "mysql:8.4" {
		t.Errorf("there have been %v Pods, and the primary's image is %s", made, got)
	}

	t.Log("every account can log in, and the upgrade continues by itself")
	v.node.bar("9.7.6")
	v.upgraded(t, "db", "mysql:9.7")
	if made := v.made("db"); made != [3]int{3, 2, 2} {
		t.Errorf("there have been %v Pods", made)
	}

	t.Log("a replica is not heard, so that the next one does not begin")
	v.node.cutOff("db-2", true)
	v.until(t, "db", "MembersNotReady")
	written := v.get(t, "statefulsets", "db").GetGeneration()
	v.apply(t, "db", "secret: root, replicas: 3, image: 'mysql:26.4'")
	soon(t, func(ctx context.Context) string {
		now, err := v.cluster(ctx, "db")
		told := meta.FindStatusCondition(now.Status.Conditions, upgradeBlocked)
		if err != nil || told == nil || !strings.Contains(told.Message, "spec.image mysql:26.4 begins when all members serve and are in sync") || !strings.Contains(told.Message, "waiting for db-2") {
			return fmt.Sprintf("the condition is %+v (%v)", told, err)
		}
		return ""
	})
	if generation := v.get(t, "statefulsets", "db").GetGeneration(); generation != written {
		t.Errorf("the StatefulSet was changed %d times", generation-written)
	}
	v.node.bar("26.4.6", app)
	v.node.cutOff("db-2", false)

	t.Log("it begins when the replica is heard, and continues when a user allows it")
	v.until(t, "db", upgradeBlocked)
	soon(t, func(context.Context) string {
		if got := v.images(t, "db", 3); got != "mysql:9.7 mysql:26.4 mysql:26.4" {
			return "the images are " + got
		}
		return ""
	})
	update, _, _ = unstructured.NestedString(v.get(t, "statefulsets", "db").Object, "status", "updateRevision")
	v.asks(t, "db", map[string]string{mysqlcluster.AnnotationRestartPrimary: update})
	v.upgraded(t, "db", "mysql:26.4")
	if errors := o.log.all(); len(errors) > 0 {
		t.Errorf("holding back is no error: %v", errors)
	}
}

// TestMySQLClusterAddsMembersBeforeAnUpgrade: none could get its data from another release series.
func TestMySQLClusterAddsMembersBeforeAnUpgrade(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.operate(t, nil)
	v.apply(t, "db", "secret: root, replicas: 1, image: 'mysql:8.4'")
	v.settled(t, "db")
	v.apply(t, "db", "secret: root, replicas: 3, image: 'mysql:9.7'")
	v.upgraded(t, "db", "mysql:9.7")
	if made := v.made("db"); made != [3]int{2, 2, 2} {
		t.Errorf("there have been %v Pods of the members, want each of before and after the upgrade", made)
	}
}

// TestMySQLClusterKeepsAnotherImageOfTheSameNameFromItsPrimary: a tag may be moved, and then any change that restarts members brings
// another MySQL. With two members the primary would be next as soon as the replica is ready.
func TestMySQLClusterKeepsAnotherImageOfTheSameNameFromItsPrimary(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	s.node.releases("26.4.0")
	s.node.bar("26.4.0", replication.Account{User: "app", Host: "%", Plugin: "mysql_native_password"})
	s.apply(t, "db", "secret: root, config: {max_connections: '5'}")
	s.stalled(t, s.until(t, "db", upgradeBlocked), "held back from the primary db-0", "has MySQL 26.4", "no way back to MySQL 9.7")
	if made := s.made("db"); made != [3]int{1, 2, 0} {
		t.Errorf("there have been %v Pods", made)
	}
	s.node.bar("26.4.0")
	soon(t, func(ctx context.Context) string {
		now, err := s.cluster(ctx, "db")
		if err != nil || now.Status.Version != "26.4.0" {
			return fmt.Sprintf("the primary has %s (%v)", now.Status.Version, err)
		}
		return ""
	})
	s.settled(t, "db")
}

// refusal refuses an operator's writes of one resource as conflicts, once it has let some through.
type refusal struct {
	resource string
	isOn     atomic.Bool
	lets     atomic.Int64
	refused  atomic.Int64
}

func (r *refusal) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		isWrite := request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/"+r.resource+"/")
		if !isWrite || !r.isOn.Load() || r.lets.Add(-1) >= 0 {
			return next.RoundTrip(request)
		}
		r.refused.Add(1)
		return faults(nil)["409"](nil, request)
	})
}

// TestMySQLClusterHoldsThePrimaryBeforeTheReplicaIsReady: when the replica is ready, Kubernetes restarts the primary. So the replica must
// not be ready before the StatefulSet holds the primary back, even if the operator cannot change the StatefulSet for a while.
func TestMySQLClusterHoldsThePrimaryBeforeTheReplicaIsReady(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	refusing := &refusal{resource: "statefulsets"}
	s.operate(t, func(config *reconcile.Config) { config.Rest.Wrap(refusing.around) })
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	s.node.releases("26.4.0")
	s.node.bar("26.4.0", replication.Account{User: "app", Host: "%", Plugin: "mysql_native_password"})
	s.node.starting.Store(int64(3 * time.Second)) // several passes
	refusing.lets.Store(1)
	refusing.isOn.Store(true)
	s.apply(t, "db", "secret: root, config: {max_connections: '5'}")
	soon(t, func(context.Context) string {
		if made, refused := s.made("db"), refusing.refused.Load(); made[1] != 2 || refused < 3 {
			return fmt.Sprintf("there have been %v Pods, and %d writes were refused", made, refused)
		}
		return ""
	})
	refusing.isOn.Store(false)
	s.until(t, "db", upgradeBlocked)
	if made := s.made("db"); made != [3]int{1, 2, 0} {
		t.Errorf("there have been %v Pods", made)
	}
}
