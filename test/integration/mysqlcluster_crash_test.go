package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// picture is everything that belongs to a cluster, by resource and name, but what differs from one creation to the next by its nature:
// identities, times, addresses, and the content of Secrets.
func (s *site) picture(t *testing.T, cluster string) map[string]any {
	t.Helper()
	seen := map[string]any{}
	for _, what := range append(childResources(), "mysqlclusters") {
		found, err := s.of(what).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range found.Items {
			if item.GetLabels()["app.kubernetes.io/instance"] == cluster || what == "mysqlclusters" && item.GetName() == cluster {
				seen[what+"/"+item.GetName()] = portrait(what, &item)
			}
		}
	}
	document, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	identity := strings.NewReplacer(s.namespace, "NAMESPACE", string(s.get(t, "mysqlclusters", cluster).GetUID()), "UID", s.encodedCA(t, cluster), "CA")
	anonymous := map[string]any{}
	if err := json.Unmarshal([]byte(identity.Replace(string(document))), &anonymous); err != nil {
		t.Fatal(err)
	}
	return anonymous
}

// encodedCA is the certificate of a cluster's CA as a JSON document has it. Without a cluster's Secret it is no text that occurs.
func (s *site) encodedCA(t *testing.T, cluster string) string {
	t.Helper()
	found, err := s.authority(t.Context(), cluster)
	if apierrors.IsNotFound(err) {
		return "no CA"
	}
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(string(found.Data["ca.crt"]))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(encoded), `"`)
}

func portrait(what string, item *unstructured.Unstructured) map[string]any {
	labels := item.GetLabels()
	delete(labels, "controller-revision-hash") // of content that names the namespace
	shown := map[string]any{"labels": labels, "finalizers": item.GetFinalizers()}
	for _, owner := range item.GetOwnerReferences() {
		shown["owner"] = fmt.Sprintf("%s/%s %t", owner.Kind, owner.Name, *owner.Controller)
	}
	for _, entry := range item.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "mysql-operator") {
			shown[entry.Manager+" "+string(entry.Operation)] = entry.FieldsV1.GetRawString()
		}
	}
	switch what {
	case "secrets":
		data, _, _ := unstructured.NestedMap(item.Object, "data")
		shown["keys"] = slices.Sorted(maps.Keys(data))
	case "configmaps":
		shown["data"] = item.Object["data"]
	case "pods", "persistentvolumeclaims":
	case "mysqlclusters":
		status, _, _ := unstructured.NestedMap(item.Object, "status")
		// The record's revision counts the steps that led to it, of which a crash may take one more.
		shown["status"] = without(status, "lastTransitionTime", "gtidExecuted", "lagSeconds", "revision")
	default:
		spec, _, _ := unstructured.NestedMap(item.Object, "spec")
		shown["spec"] = without(spec, "clusterIP", "clusterIPs")
	}
	return shown
}

// without leaves fields out wherever they occur.
func without(value any, fields ...string) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for field, inner := range value {
			if !slices.Contains(fields, field) || inner == "None" { // a headless Service has no address by design
				kept[field] = without(inner, fields...)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(value))
		for _, inner := range value {
			kept = append(kept, without(inner, fields...))
		}
		return kept
	}
	return value
}

// ownSecrets are the contents of those Secrets of a cluster that must never change once they are made.
func (s *site) ownSecrets(ctx context.Context, cluster string) map[string]map[string][]byte {
	held := map[string]map[string][]byte{}
	if found, err := s.authority(ctx, cluster); err == nil {
		held["CA"] = found.Data
	}
	for _, suffix := range []string{"-accounts", "-tls"} {
		if found, err := s.secret(ctx, cluster+suffix); err == nil {
			held[cluster+suffix] = found.Data
		}
	}
	return held
}

// TestMySQLClusterSurvivesEveryCrash kills the operator at each write of a cluster's creation, once before the API server has got it and
// once before the operator has got the answer. The next operator must come to the same end as one that was never killed.
func TestMySQLClusterSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	clean := newSite(t)
	undisturbed := clean.operate(t, nil)
	clean.apply(t, "db", "secret: root")
	clean.settled(t, "db")
	want, writes := clean.picture(t, "db"), undisturbed.wire.written()
	if len(writes) < 15 {
		t.Fatalf("a creation takes more writes than these: %v", writes)
	}
	survivesCrashes(t, crashesUpTo(len(writes)), func(t *testing.T, at crash) bool { return survivesCrash(t, at, want) })
}

// survivesCrash reports whether the operator died as planned.
func survivesCrash(t *testing.T, at crash, want map[string]any) bool {
	t.Helper()
	s := newSite(t)
	doomed := s.operate(t, nil)
	doomed.wire.dieAt(at.write, at.sent)
	s.apply(t, "db", "secret: root")
	soon(t, func(ctx context.Context) string {
		cluster, err := s.cluster(ctx, "db")
		if doomed.wire.isDead() || err == nil && len(cluster.Status.InSync) == 2 && cluster.Status.RequiredAcks == 1 {
			return ""
		}
		return fmt.Sprintf("the operator has made the writes %v", doomed.wire.written())
	})
	doomed.finish(t)
	before := s.ownSecrets(t.Context(), "db")

	s.operate(t, nil)
	s.settled(t, "db")
	soon(t, func(context.Context) string { return cmp.Diff(want, s.picture(t, "db")) })
	after := s.ownSecrets(t.Context(), "db")
	for name, data := range before {
		same(t, after[name], data)
	}
	s.node.podsOnce(t, "db", 2)
	return doomed.wire.isDead()
}

// TestMySQLClusterUnderTwoOperators has two operators that both think they lead, and then counts what they write when all is well.
func TestMySQLClusterUnderTwoOperators(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.operate(t, s.elected)
	second := s.operate(t, nil)
	s.apply(t, "db", "secret: root, replicas: 3, config: {max-connections: '5', net_read_timeout: '6', sort_buffer_size: 1M}")
	s.apply(t, "waits", "secret: nowhere")
	s.settled(t, "db")
	s.until(t, "waits", "SecretNotFound")
	soon(t, func(ctx context.Context) string {
		cluster, err := s.cluster(ctx, "db")
		if err != nil || len(cluster.Status.InSync) != 3 {
			return fmt.Sprintf("in sync are %v, want all three (%v)", cluster.Status.InSync, err)
		}
		return ""
	})
	if generation := s.get(t, "statefulsets", "db").GetGeneration(); generation != 1 {
		t.Errorf("the StatefulSet was changed %d times while it was made", generation-1)
	}
	s.node.podsOnce(t, "db", 3)

	t.Log("at rest nothing is written but the Lease, though both operators continue to look")
	s.restful(t, first, second)
}
