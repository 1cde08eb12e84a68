package integration

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	mysqlbackupinstance "github.com/mysql-operator/mysql-operator/reconcile/mysql/backup"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

func backupInstances() schema.Kind { return mysqlKind("MySQLBackupInstance", "mysqlbackupinstances") }

// depot is a namespace in which backups are made. Kubernetes' own Job controller makes the Pods; the tests are their nodes, and the
// operator of the clusters.
type depot struct{ *place }

func newDepot(t *testing.T) *depot {
	t.Helper()
	return newDepotOn(t, pool.Shared(t))
}

func newDepotOn(t *testing.T, server *apiserver.Server) *depot {
	t.Helper()
	d := &depot{newPlace(t, server, depotKinds()...)}
	d.settle(t, mysqlbackupinstance.Controller(backupInstances(), "", ""))
	d.grant(t, instanceRules())
	return d
}

// depotKinds are those that backups take.
func depotKinds() []schema.Kind {
	return []schema.Kind{mysqlClusters(), backupSchedules(), backupInstances()}
}

// instanceRules are what the manifests grant an operator in a namespace.
func instanceRules() []rbacv1.PolicyRule {
	return rulesOf(mysqlbackupinstance.Controller(backupInstances(), "", ""))
}

// cluster makes a cluster whose members serve, with the Secrets that its operator would make.
func (d *depot) cluster(t *testing.T, name string) {
	t.Helper()
	d.make(t, "mysqlclusters", fmt.Sprintf("{apiVersion: %s/v1, kind: MySQLCluster, metadata: {name: %s}, spec: {secret: root, storage: 2Gi}}", schema.MySQLGroup, name))
	d.certificates(t, name)
	d.serve(t, name)
}

// serve says that a cluster's members serve.
func (d *depot) serve(t *testing.T, name string) {
	t.Helper()
	d.patch(t, "mysqlclusters", name, fmt.Sprintf(`{"status":{"primary":"%[1]s-0","replicas":2,"readyReplicas":2}}`, name), "status")
}

// certificates makes a cluster's CA and its members' certificate.
func (d *depot) certificates(t *testing.T, cluster string) {
	t.Helper()
	now := time.Now()
	authority, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: cluster}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := authority.Parse()
	if err != nil {
		t.Fatal(err)
	}
	member, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: cluster}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"*." + cluster + "-pods." + d.namespace + ".svc"},
	}, signer)
	if err != nil {
		t.Fatal(err)
	}
	d.secretIn(t, d.home, agent.AuthoritySecret(d.namespace, cluster), map[string]string{"ca.crt": string(authority.Certificate), "ca.key": string(authority.Key)})
	d.secret(t, cluster+"-tls", map[string]string{"ca.crt": string(authority.Certificate), "tls.crt": string(member.Certificate), "tls.key": string(member.Key)})
}

func (d *depot) secret(t *testing.T, name string, content map[string]string) {
	t.Helper()
	d.secretIn(t, d.namespace, name, content)
}

func (d *depot) secretIn(t *testing.T, namespace, name string, content map[string]string) {
	t.Helper()
	made := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
	fields := map[string]any{}
	for key, value := range content {
		fields[key] = value
	}
	made.Object["stringData"] = fields
	if _, err := d.Dynamic.Resource(coreResource("secrets")).Namespace(namespace).Create(t.Context(), made, metav1.CreateOptions{FieldManager: "user"}); err != nil {
		t.Fatal(err)
	}
}

// back makes an instance with these lines in its spec.
func (d *depot) back(t *testing.T, name, spec string) {
	t.Helper()
	d.make(t, "mysqlbackupinstances", fmt.Sprintf("{apiVersion: %s/v1, kind: MySQLBackupInstance, metadata: {name: %q}, spec: {%s}}", schema.MySQLGroup, name, spec))
}

// instance reads an instance; strictly, so that a status that the definition does not know is a failure.
func (d *depot) instance(ctx context.Context, name string) (mysqlv1.MySQLBackupInstance, error) {
	var instance mysqlv1.MySQLBackupInstance
	found, err := d.of("mysqlbackupinstances").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return instance, err
	}
	err = schema.DecodeStrict(found, &instance)
	return instance, err
}

// until waits until an instance is in a phase for a reason.
func (d *depot) until(t *testing.T, name string, phase mysqlv1.BackupPhase, reason string) mysqlv1.MySQLBackupInstance {
	t.Helper()
	var instance mysqlv1.MySQLBackupInstance
	soon(t, func(ctx context.Context) string {
		var err error
		if instance, err = d.instance(ctx, name); err != nil {
			return err.Error()
		}
		is := readyOf(instance)
		if instance.Status.Phase != phase || is.Reason != reason || instance.Status.ObservedGeneration != instance.Generation {
			return fmt.Sprintf("%s is %s because of %s at generation %d of %d: %s; wanted %s because of %s",
				name, instance.Status.Phase, is.Reason, instance.Status.ObservedGeneration, instance.Generation, is.Message, phase, reason)
		}
		return ""
	})
	return instance
}

func readyOf(instance mysqlv1.MySQLBackupInstance) metav1.Condition {
	return readyIn(instance.Status.Conditions)
}

// waitsFor waits until an instance that has not begun reports the reason, in a message with these words. stalled is whether a user must
// act.
func (d *depot) waitsFor(t *testing.T, name, reason string, stalled bool, words ...string) {
	t.Helper()
	instance := d.until(t, name, mysqlv1.BackupScheduled, reason)
	says(t, readyOf(instance).Message, words...)
	if meta.IsStatusConditionTrue(instance.Status.Conditions, mysqlv1.ConditionStalled) != stalled || meta.IsStatusConditionTrue(instance.Status.Conditions, mysqlv1.ConditionReconciling) == stalled {
		t.Errorf("%s: stalled should be %t: %+v", name, stalled, instance.Status.Conditions)
	}
	kind := reconcile.Normal
	if stalled {
		kind = reconcile.Warning
	}
	d.told(t, name, kind+" "+reason)
}

// told waits for an event about an instance, such as "Warning DonorBusy", and returns its note.
func (d *depot) told(t *testing.T, instance, what string) string {
	t.Helper()
	note := ""
	soon(t, func(ctx context.Context) string {
		events, err := d.of("events").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		heard := []string{}
		for _, event := range events.Items {
			about, _, _ := unstructured.NestedString(event.Object, "regarding", "name")
			if about != instance {
				continue
			}
			said := fmt.Sprintf("%v %v", event.Object["type"], event.Object["reason"])
			if heard = append(heard, said); said == what {
				note, _, _ = unstructured.NestedString(event.Object, "note")
				return ""
			}
		}
		return fmt.Sprintf("no event %q about %s but %q", what, instance, heard)
	})
	return note
}

// pod waits for the Pod that a Job of an instance has made last and that has not ended; what is backup or delete.
func (d *depot) pod(t *testing.T, instance, what string) string {
	t.Helper()
	name := ""
	soon(t, func(ctx context.Context) string {
		found, err := d.of("pods").List(ctx, metav1.ListOptions{LabelSelector: transfer.Selector + "," + transfer.LabelBackup + "=" + instance})
		if err != nil {
			return err.Error()
		}
		for _, item := range found.Items {
			phase, _, _ := unstructured.NestedString(item.Object, "status", "phase")
			owner := metav1.GetControllerOf(&item)
			if phase == string(corev1.PodPending) && item.GetDeletionTimestamp() == nil && owner != nil && strings.HasSuffix(owner.Name, "-"+what) {
				name = item.GetName()
				return ""
			}
		}
		return fmt.Sprintf("there are %d Pods for %s of %s, none of them pending", len(found.Items), what, instance)
	})
	return name
}

// becomes writes what kubelet would about a Pod with one container.
func (d *depot) becomes(t *testing.T, pod, phase, address string, state map[string]any) {
	t.Helper()
	container := map[string]any{"name": programOf(t, d.get(t, "pods", pod)), "image": "none", "imageID": "none", "ready": false, "restartCount": 0, "state": state}
	status := map[string]any{"phase": phase, "containerStatuses": []any{container}, "podIP": address, "podIPs": []any{map[string]any{"ip": address}}}
	if address == "" {
		delete(status, "podIP")
		delete(status, "podIPs")
	}
	content, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	d.patch(t, "pods", pod, string(content), "status")
}

// programOf is the name of a Pod's one container.
func programOf(t *testing.T, pod *unstructured.Unstructured) string {
	t.Helper()
	var typed corev1.Pod
	if err := schema.Decode(pod, &typed); err != nil || len(typed.Spec.Containers) != 1 {
		t.Fatalf("Pod %s has the containers %v (%v)", pod.GetName(), typed.Spec.Containers, err)
	}
	return typed.Spec.Containers[0].Name
}

// runs starts a Pod at an address; it may be empty for one that cannot be asked.
func (d *depot) runs(t *testing.T, pod, address string) {
	t.Helper()
	d.becomes(t, pod, "Running", address, map[string]any{"running": map[string]any{"startedAt": "2026-01-01T00:00:00Z"}})
}

// ends ends a Pod with an exit status and a termination message.
func (d *depot) ends(t *testing.T, pod string, status int, message string) {
	t.Helper()
	phase, finished := "Succeeded", "2026-01-01T00:01:00Z"
	if status != 0 {
		// Kubernetes counts from then until it makes the next one.
		phase, finished = "Failed", time.Now().UTC().Format(time.RFC3339)
	}
	d.becomes(t, pod, phase, "", map[string]any{"terminated": map[string]any{
		"exitCode": status, "message": message, "reason": "Ended", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": finished,
	}})
}

// outcome is what a Pod says at its end about an instance.
func (d *depot) outcome(t *testing.T, name, reason, message string) string {
	t.Helper()
	instance, err := d.instance(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	said := protocol.Outcome{Reason: reason, Message: message}
	if reason == protocol.ReasonCompleted {
		said.Source, said.ServerVersion, said.GTIDExecuted = "db-1", "9.7.4", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
		said.Checksum, said.DataSize, said.Size, said.UID, said.Instance = "sha256:abc", 3<<30, 1<<30, string(instance.UID), name
		said.Spent = &protocol.Spent{Wait: 100, Copy: 2000, Finish: 300}
	}
	content, err := said.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// succeeds lets the backup of an instance run and end well.
func (d *depot) succeeds(t *testing.T, name string) mysqlv1.MySQLBackupInstance {
	t.Helper()
	pod := d.pod(t, name, "backup")
	d.runs(t, pod, "")
	d.ends(t, pod, protocol.ExitDone, d.outcome(t, name, protocol.ReasonCompleted, ""))
	return d.until(t, name, mysqlv1.BackupCompleted, protocol.ReasonCompleted)
}

// removes lets the Pod that deletes an instance's data end.
func (d *depot) removes(t *testing.T, name string, status int, message string) {
	t.Helper()
	pod := d.pod(t, name, "delete")
	d.runs(t, pod, "")
	d.ends(t, pod, status, message)
}

// reporter answers for a Pod at work.
type reporter struct {
	address string
	says    atomic.Pointer[protocol.Progress]
	asked   atomic.Int32
}

// reporter starts a server with a cluster's certificate at an address of its own. The server answers the operator and no other client.
func (d *depot) reporter(t *testing.T, cluster string) *reporter {
	t.Helper()
	held, err := d.place.secret(t.Context(), cluster+"-tls")
	if err != nil {
		t.Fatal(err)
	}
	security, err := certificates{authority: held.Data["ca.crt"], certificate: held.Data["tls.crt"], key: held.Data["tls.key"]}.server()
	if err != nil {
		t.Fatal(err)
	}
	listener, address, err := listenAlone()
	if err != nil {
		t.Fatal(err)
	}
	r := &reporter{address: address}
	server := &http.Server{TLSConfig: security, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if len(request.TLS.VerifiedChains) == 0 || request.TLS.PeerCertificates[0].Subject.CommonName != "mysql-operator" || request.URL.Path != "/v1/progress" {
			http.Error(w, "only the operator may ask this", http.StatusUnauthorized)
			return
		}
		r.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.says.Load())
	})}
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with the test
	t.Cleanup(func() { _ = server.Close() })
	return r
}

// operate starts an operator for instances.
func (d *depot) operate(t *testing.T, configure func(*reconcile.Config)) *operating {
	t.Helper()
	return d.place.operate(t, configure, mysqlbackupinstance.Controller(backupInstances(), "operator:test", d.home))
}
