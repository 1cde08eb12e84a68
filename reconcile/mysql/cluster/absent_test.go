package cluster

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// liveSetOf returns the StatefulSet of db0 as the API server has it.
func liveSetOf(replicas int32) appsv1.StatefulSet {
	yes := true
	return appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "db0", UID: "setdb0", ResourceVersion: "8", Labels: children.Names{Namespace: "shop", Cluster: "db0"}.Labels(),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "x/v1", Kind: "MySQLCluster", Name: "db0", UID: "uid0", Controller: &yes}},
		},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas},
	}
}

func livePodOf(owner string) corev1.Pod {
	yes, pod := true, readyPod("db0-3")
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db0", UID: "setdb0", Controller: &yes}}
	pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID = owner, "setdb0"
	if owner != "db0" {
		pod.OwnerReferences[0].UID = "another"
	}
	return pod
}

// The caches show three members, and the record counts on a fourth. The caches of an operator that has just taken over may be outdated.
func TestAMemberOfTheRecordIsNotGoneBecauseACacheSaysSo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		set       int32
		pod       string // the StatefulSet that controls the Pod; empty if there is no Pod
		wantPod   bool
		wantScale int
	}{
		"the former operator scaled out":                    {set: 4, pod: "db0", wantPod: true, wantScale: 4},
		"the former operator scaled out, no Pod is created": {set: 4, wantScale: 4},
		"it is leaving, its Pod ends":                       {set: 3, pod: "db0", wantPod: true, wantScale: 3},
		"it has left":                                       {set: 3, wantScale: 3},
		"it has left, another Pod has its name":             {set: 3, pod: "other", wantScale: 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, 1)
			s.live.Store("statefulsets/db0", liveSetOf(test.set))
			if test.pod != "" {
				s.live.Store("pods/db0-3", livePodOf(test.pod))
			}
			cluster := aCluster(4, func(cluster *v1.MySQLCluster) {
				cluster.Name, cluster.UID = "db0", "uid0"
				cluster.Status.Primary, cluster.Status.InSync = "db0-0", []string{"db0-0", "db0-1", "db0-2", "db0-3"}
			})
			seen, err := s.observe(t.Context(), s.client(t, "db0"), cluster, nil)
			if err != nil {
				t.Fatal(err)
			}
			if scaleOf(seen) != test.wantScale || len(seen.members) != 4 || seen.members[3].Pod != test.wantPod {
				t.Errorf("the scale is %d and the members are %+v, want %d, and a Pod of the last one: %t", scaleOf(seen), seen.members, test.wantScale, test.wantPod)
			}
		})
	}
}

func TestAStatefulSetThatTheCacheLacksIsReadLive(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	client := s.client(t, "db0")
	n := children.Names{Namespace: "shop", Cluster: "db9"}
	var seen observed
	if err := s.observeChildren(t.Context(), client, n, &seen); err != nil || seen.set != nil {
		t.Fatalf("there is no StatefulSet, and %v was seen (%v)", seen.set, err)
	}
	set := liveSetOf(2)
	set.Name, set.Labels = "db9", n.Labels()
	s.live.Store("statefulsets/db9", set)
	if err := s.observeChildren(t.Context(), client, n, &seen); err != nil {
		t.Fatal(err)
	}
	if scaleOf(seen) != 2 {
		t.Errorf("the scale is %d, want 2", scaleOf(seen))
	}
}

// The operator decides the number of members from the StatefulSet that it has seen. It does not change another one.
func TestOnlyTheStatefulSetThatWasSeenIsChanged(t *testing.T) {
	t.Parallel()
	cluster := aCluster(3)
	for _, version := range []string{"", "8"} {
		set := as[appsv1.StatefulSet](t, children.StatefulSet(children.NamesOf(cluster), cluster, children.StatefulSetInput{Scale: 3, ClaimSize: children.WantedStorage(cluster), Version: version}))
		if set.ResourceVersion != version {
			t.Errorf("version %q is wanted, want %q", set.ResourceVersion, version)
		}
	}
}
