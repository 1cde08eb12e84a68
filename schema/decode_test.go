package schema

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	magalixv1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func TestDecodeToleratesWhatOnlyNewerVersionsKnow(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{
		"kind": "MySQLCluster", "metadata": map[string]any{"name": "a", "namespace": "n"},
		"spec": map[string]any{"secret": "s", "replicas": int64(3), "storage": int64(1 << 30), "invented": "later"},
	}}
	typed := mysqlv1.MySQLCluster{}
	if err := Decode(object, &typed); err != nil {
		t.Fatal(err)
	}
	if typed.Name != "a" || *typed.Spec.Replicas != 3 || typed.Spec.Storage.Value() != 1<<30 {
		t.Errorf("read as %+v", typed)
	}
	wantRefusal(t, DecodeStrict(object, &mysqlv1.MySQLCluster{}), "decode MySQLCluster n/a", "invented")
}

func TestDecodeKeepsTheTwoSpellingsApart(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"configMap": "x", "configmap": "y"}}}
	typed := magalixv1.ConfigMonitor{}
	if err := Decode(object, &typed); err != nil {
		t.Fatal(err)
	}
	if typed.Spec.ConfigMap != "x" || typed.Spec.ConfigMapLower != "y" {
		t.Errorf("read as %+v", typed.Spec)
	}
}

func TestDecodeOfTheWrongType(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "MySQLCluster", "spec": map[string]any{"replicas": "two"}}}
	wantRefusal(t, Decode(object, &mysqlv1.MySQLCluster{}), "decode MySQLCluster")
	wantRefusal(t, Decode(nil, &mysqlv1.MySQLCluster{}), "no object")
}

func TestEncodeOmitsWhatIsUnset(t *testing.T) {
	t.Parallel()
	got, err := Encode(mysqlv1.MySQLClusterStatus{Epoch: 7, Members: []mysqlv1.Member{{Name: "a-0"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"epoch": int64(7), "replicas": int64(0), "readyReplicas": int64(0),
		"members": []any{map[string]any{"name": "a-0"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("encoded (-want +got):\n%s", diff)
	}
}

func TestStatusSurvivesTheWayThereAndBack(t *testing.T) {
	t.Parallel()
	lag, at := int64(0), metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	want := mysqlv1.MySQLClusterStatus{
		ObservedGeneration: 2, Phase: mysqlv1.PhaseReady, Primary: "a-0", Epoch: 1, InSync: []string{"a-0", "a-1"}, RequiredAcks: 1,
		Conditions: []metav1.Condition{{Type: mysqlv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "AllServing", Message: "m", LastTransitionTime: at}},
		Replicas:   2, ReadyReplicas: 2, ReadySummary: "2/2", Members: []mysqlv1.Member{{Name: "a-1", Role: mysqlv1.RoleReplica, LagSeconds: &lag}},
		Endpoints: mysqlv1.Endpoints{Write: "a.n.svc:3306"},
	}
	content, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	typed := mysqlv1.MySQLCluster{}
	if err := DecodeStrict(&unstructured.Unstructured{Object: map[string]any{"status": content}}, &typed); err != nil {
		t.Fatal(err)
	}
	typed.Status.Conditions[0].LastTransitionTime = metav1.NewTime(typed.Status.Conditions[0].LastTransitionTime.UTC())
	if diff := cmp.Diff(want, typed.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestEncodeOfSomethingThatIsNoObject(t *testing.T) {
	t.Parallel()
	_, err := Encode([]string{"a"})
	wantRefusal(t, err, "encode []string", "not an object")
}
