package integration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// foreignObject is an object that another client made under a name that a cluster needs; %s is the cluster's name.
type foreignObject struct{ what, name, document string }

const foreignLabels = "labels: {team: other}"

// ourLabels are the labels that the operator's caches select by. A foreign object has them when a user copied a manifest.
const ourLabels = "labels: {app.kubernetes.io/name: mysql, app.kubernetes.io/managed-by: mysql-operator, app.kubernetes.io/instance: %[1]s}"

func foreignObjects() map[string]foreignObject {
	return map[string]foreignObject{
		"statefulset": {"statefulsets", "%s", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: %[2]s, " + foreignLabels + "}\nspec: {replicas: 0, serviceName: x, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: none}]}}}\n"},
		"service":     {"services", "%s", "apiVersion: v1\nkind: Service\nmetadata: {name: %[2]s, " + foreignLabels + "}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n"},
		"reading":     {"services", "%s-read", "apiVersion: v1\nkind: Service\nmetadata: {name: %[2]s, " + ourLabels + "}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n"},
		"identity":    {"services", "%s-pods", "apiVersion: v1\nkind: Service\nmetadata: {name: %[2]s, " + foreignLabels + "}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n"},
		"config":      {"configmaps", "%s-config", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %[2]s, " + ourLabels + "}\ndata: {a: b}\n"},
		"tls":         {"secrets", "%s-tls", "apiVersion: v1\nkind: Secret\nmetadata: {name: %[2]s, " + foreignLabels + "}\nstringData: {tls.crt: x}\n"},
		"trust":       {"configmaps", "%s-ca-cert", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %[2]s, " + foreignLabels + "}\ndata: {ca.crt: x}\n"},
		"accounts":    {"secrets", "%s-accounts", "apiVersion: v1\nkind: Secret\nmetadata: {name: %[2]s, " + ourLabels + "}\nstringData: {agent: x}\n"},
		"claim":       {"persistentvolumeclaims", "data-%s-0", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %[2]s, " + foreignLabels + "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"},
		"account":     {"serviceaccounts", "%s", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %[2]s, " + foreignLabels + "}\n"},
		"budget":      {"poddisruptionbudgets", "%s", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: %[2]s, " + foreignLabels + "}\nspec: {minAvailable: 5, selector: {matchLabels: {a: b}}}\n"},
	}
}

// TestMySQLClusterLeavesForeignObjectsAlone has an object of another client under each name that a cluster needs.
func TestMySQLClusterLeavesForeignObjectsAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	stories := map[string]func(*testing.T){}
	for cluster, foreign := range foreignObjects() {
		stories[cluster] = func(t *testing.T) { s.leavesAlone(t, cluster, foreign) }
	}
	sideBySide(t, 3, stories)
}

func (s *site) leavesAlone(t *testing.T, cluster string, foreign foreignObject) {
	t.Helper()
	name := fmt.Sprintf(foreign.name, cluster)
	made := object(t, fmt.Sprintf(foreign.document, cluster, name))
	before, err := s.of(foreign.what).Create(t.Context(), made, metav1.CreateOptions{FieldManager: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, cluster, "secret: root, replicas: 1")
	blocked := s.until(t, cluster, "ForeignObject")
	s.stalled(t, blocked, foreign.what, s.namespace+"/"+name+" exists already and was not made by this operator", "delete or rename it, or choose another name")
	if blocked.Status.Phase != "Waiting" {
		t.Errorf("the phase is %s, want Waiting", blocked.Status.Phase)
	}
	t.Log("a pass that is made for another reason leaves it alone, too")
	s.apply(t, cluster, "secret: root, replicas: 1, config: {max_connections: '5'}")
	s.until(t, cluster, "ForeignObject")
	s.unchanged(t, foreign.what, before)

	t.Log("once the object is out of the way, the cluster continues")
	s.remove(t, foreign.what, name)
	s.ready(t, cluster)
}

// TestMySQLClusterLeavesPlantedSecretsAlone: before there is a cluster, a user who may write Secrets only makes some with all of the
// operator's marks. That user would know the passwords of the cluster's accounts, or the key of its members.
func TestMySQLClusterLeavesPlantedSecretsAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	stories := map[string]func(*testing.T){}
	for _, part := range []string{"accounts", "tls"} {
		stories[part] = func(t *testing.T) { s.leavesPlantedAlone(t, "planted-"+part, "planted-"+part+"-"+part) }
	}
	sideBySide(t, 2, stories)
}

func (s *site) leavesPlantedAlone(t *testing.T, cluster, name string) {
	t.Helper()
	planted := object(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %[2]s, "+ourLabels+"}\nstringData: {a: known}\n", cluster, name))
	made, err := s.of("secrets").Create(t.Context(), planted, metav1.CreateOptions{FieldManager: "mysql-operator"})
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, cluster, "secret: root, replicas: 1")
	s.stalled(t, s.until(t, cluster, "ForeignObject"), s.namespace+"/"+name+" exists already", "without the StatefulSet "+cluster, "delete it")
	if now := s.get(t, "secrets", name); now.GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("Secret %s was written to", name)
	}
	s.remove(t, "secrets", name)
	s.ready(t, cluster)
}

// unchanged fails the test if the operator has written to an object since. Kubernetes' own controllers may have given some a status.
func (s *site) unchanged(t *testing.T, what string, before *unstructured.Unstructured) {
	t.Helper()
	now := s.get(t, what, before.GetName())
	for _, entry := range now.GetManagedFields() {
		if entry.Manager != "someone" && entry.Manager != "kube-controller-manager" {
			t.Errorf("%s %s was written by %s", what, now.GetName(), entry.Manager)
		}
	}
	touchedByOthers := what == "statefulsets" || what == "persistentvolumeclaims" || what == "poddisruptionbudgets"
	if !touchedByOthers && now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("%s %s was written to", what, now.GetName())
	}
	if what != "persistentvolumeclaims" { // it is bound to a volume meanwhile
		same(t, content(now), content(before))
	}
}

// content is all that people and operators write into an object.
func content(object *unstructured.Unstructured) map[string]any {
	said := map[string]any{"labels": object.GetLabels(), "annotations": object.GetAnnotations(), "owners": object.GetOwnerReferences()}
	for field, value := range object.Object {
		if field != "metadata" && field != "status" {
			said[field] = value
		}
	}
	return said
}

// TestMySQLClusterNamedLikeAnothersService has two clusters of which one needs the name of the other's Service.
func TestMySQLClusterNamedLikeAnothersService(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "shop", "secret: root, replicas: 1")
	s.ready(t, "shop")
	before := s.get(t, "services", "shop-read")

	s.apply(t, "shop-read", "secret: root, replicas: 1")
	s.stalled(t, s.until(t, "shop-read", "ForeignObject"), "services "+s.namespace+"/shop-read exists already and belongs to MySQLCluster/shop", "choose another name")
	if now := s.get(t, "services", "shop-read"); now.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the Service of the cluster that was there first was written to")
	}
	s.ready(t, "shop")
}
