package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// certificateScene is a running cluster whose Secrets the operator reads again and again.
type certificateScene struct {
	*shopOf
	t       *testing.T
	cluster v1.MySQLCluster
	pass    *reconcile.Client
	at      time.Time
}

func newOffice(t *testing.T) *certificateScene {
	t.Helper()
	o := &certificateScene{shopOf: newShop(t, 1), t: t, at: time.Now()}
	o.cluster = aCluster(3, func(cluster *v1.MySQLCluster) {
		cluster.Name, cluster.UID, cluster.Status.Primary = "db0", "uid0", "db0-0"
	})
	o.pass = o.client(t, "db0")
	o.now = func() time.Time { return o.at }
	if known, err := o.look(); err != nil || known.agents == nil {
		t.Fatalf("the operator does not reach the members of a new cluster: %v", err)
	}
	return o
}

func (o *certificateScene) look() (clusterMemory, error) {
	o.t.Helper()
	known, _, err := o.prerequisites(o.t.Context(), o.pass, o.cluster)
	return known, err
}

// rotate asks for a new CA.
func (o *certificateScene) rotate() {
	o.cluster.Annotations = map[string]string{AnnotationRotate: o.at.Add(time.Minute).UTC().Format(time.RFC3339)}
	o.at = o.at.Add(2 * time.Minute)
}

// publish creates the ConfigMap for clients.
func (o *certificateScene) publish(known clusterMemory) {
	o.live.Store("configmaps/db0-ca-cert", children.TrustMap(children.Names{Namespace: "shop", Cluster: "db0"}, known.bundle))
}

// TestUnwritableCertificatesDoNotBlockThePass: the members' certificates are valid, something refuses their renewal, and
// the operator restarts.
func TestUnwritableCertificatesDoNotBlockThePass(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.at = o.at.Add(250 * day)
	o.refused.Store("-tls")
	o.memory = newMemory()
	known, err := o.look()
	if err != nil || known.agents == nil {
		t.Errorf("the operator does not reach the members: %v", err)
	}
	o.at = o.at.Add(25 * time.Hour)
	known, _ = o.look()
	if ends := leafOf(t, known.security.Client().Certificates[0]).NotAfter; ends.Before(o.at) {
		t.Errorf("at %s the operator shows a certificate that ended at %s", o.at, ends)
	}
	o.refused.Store("")
	if known, err := o.look(); err != nil || known.stuck || o.patched.Load() != 1 {
		t.Errorf("once nothing refuses it, the certificate is not renewed: %v", err)
	}
}

// TestAnUndistributedCAIsCreatedOnce: the members' Secret cannot be changed for an hour.
func TestAnUndistributedCAIsCreatedOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.rotate()
	o.refused.Store("-tls")
	for range 60 {
		if known, _ := o.look(); known.agents == nil {
			t.Fatal("the operator does not reach the members")
		}
		o.at = o.at.Add(time.Minute)
	}
	if made := o.patched.Load(); made != 1 {
		t.Errorf("in an hour the Secret with the CAs was written %d times, want once", made)
	}
	o.refused.Store("")
	known, err := o.look()
	if err != nil || o.patched.Load() != 3 {
		t.Errorf("members did not get the new CA: %d writes (%v)", o.patched.Load(), err)
	}
	o.publish(known)
	if _, err := o.look(); err != nil || o.patched.Load() != 4 {
		t.Errorf("that clients got the new CA is not recorded: %d writes (%v)", o.patched.Load(), err)
	}
}

// TestAStartInARotationTellsNothingNew: the operator restarts while clients get time, and has not heard the members yet.
func TestAStartInARotationTellsNothingNew(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.rotate()
	known, err := o.look()
	if err != nil {
		t.Fatal(err)
	}
	o.publish(known)
	if known, err = o.look(); err != nil || known.rotation.reason != string(waitForClients) {
		t.Fatalf("it says %+v (%v)", known.rotation, err)
	}
	describeRotation(&o.cluster.Status, known.rotation)
	before := o.cluster.Status
	before.Conditions = slices.Clone(before.Conditions)
	o.memory = newMemory()
	if known, err = o.look(); err != nil {
		t.Fatal(err)
	}
	describeRotation(&o.cluster.Status, known.rotation)
	if told := rotationEvents(before, o.cluster.Status); len(told) > 0 {
		t.Errorf("after a start the events are %+v", told)
	}
	if o.patched.Load() != 4 {
		t.Errorf("Secrets were written %d times", o.patched.Load())
	}
}

// TestAForeignConfigMapDelaysNothingElse: a user created NAME-ca-cert when the operator did not, and the primary fails over.
func TestAForeignConfigMapDelaysNothingElse(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.live.Store("configmaps/db0-ca-cert", corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: theirs("db0-ca-cert")})
	s.failsOver(t, "/api/v1/namespaces/shop/services/db0", "/apis/apps/v1/namespaces/shop/statefulsets/db0")
}

// TestClientsGetACADespiteOtherProblems: a Service of that name belongs to another owner.
func TestClientsGetACADespiteOtherProblems(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.live.Store("services/db0", corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: theirs("db0")})
	s.failsOver(t, "/api/v1/namespaces/shop/configmaps/db0-ca-cert")
}

// TestAProblemHidesNoErrorThatPasses: the engine retries a transient error at once.
func TestAProblemHidesNoErrorThatPasses(t *testing.T) {
	t.Parallel()
	problem, passes := error(&reconcile.ForeignError{Resource: children.ConfigMaps(), Namespace: "shop", Name: "db-ca-cert"}), errors.New("timed out")
	for what, pair := range map[string][2]error{"first": {passes, problem}, "last": {problem, passes}, "alone": {nil, passes}} {
		if err := joined(pair[0], pair[1]); report.FromError(err) != nil || !errors.Is(err, passes) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := joined(problem, nil); report.FromError(err) == nil {
		t.Errorf("the problem is reported as %v", err)
	}
	if err := joined(nil, nil); err != nil {
		t.Error(err)
	}
}

// theirs returns the metadata of an object of another owner.
func theirs(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "theirs", ResourceVersion: "3"}
}

// failsOver applies the children of a cluster that has another primary now. One of them belongs to another owner, and these are applied
// nevertheless.
func (s *shopOf) failsOver(t *testing.T, made ...string) {
	t.Helper()
	cluster := aCluster(3, func(cluster *v1.MySQLCluster) {
		cluster.Name, cluster.UID = "db0", "uid0"
		cluster.Status.Primary, cluster.Status.InSync = "db0-1", []string{"db0-1", "db0-2"}
	})
	client := s.client(t, "db0")
	seen := observed{now: time.Now(), bundle: []byte("pem"), route: "db0-1"}
	if err := s.observeChildren(t.Context(), client, children.Names{Namespace: "shop", Cluster: "db0"}, &seen); err != nil {
		t.Fatal(err)
	}
	decision := replication.Decision{Record: recordOf(cluster.Status), Scale: 3}
	result := passResult{cluster: cluster, seen: seen, decision: decision}
	_, err := s.act(t.Context(), client, nil, planChildren(planInput{cluster: cluster, seen: seen, decision: decision}), &result)
	if found := result.problem; err != nil || found == nil || found.Reason != report.ReasonForeignObject {
		t.Errorf("it is reported as %+v (%v)", found, err)
	}
	for _, path := range made {
		if _, found := s.applied.Load(path); !found {
			t.Errorf("%s is not brought up to date", path)
		}
	}
}

// TestACAIsReplacedWhenTheTimeComes: a user asks for it by a clock that is ahead of the operator's.
func TestACAIsReplacedWhenTheTimeComes(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	asked := o.at.Add(time.Minute).Truncate(time.Second)
	o.cluster.Annotations = map[string]string{AnnotationRotate: asked.UTC().Format(time.RFC3339)}
	for _, at := range []struct {
		when   time.Time
		writes int64
	}{{o.at, 0}, {asked.Add(-time.Second), 0}, {asked, 3}, {asked.Add(time.Minute), 3}} {
		o.at = at.when
		if _, err := o.look(); err != nil || o.patched.Load() != at.writes {
			t.Errorf("%s after the time that was asked for there were %d writes, want %d (%v)", at.when.Sub(asked), o.patched.Load(), at.writes, err)
		}
	}
}
