package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// aCluster is in the middle of a takeover.
func aCluster() v1.MySQLCluster {
	at := v1.NewMicroTime(time.Date(2026, 8, 1, 3, 4, 5, 0, time.UTC))
	ended, lag := v1.NewMicroTime(at.Add(-57*time.Minute)), int64(2)
	failed := v1.NewMicroTime(at.Add(-time.Hour - 2500*time.Millisecond))
	return v1.MySQLCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: schema.Kinds()[0].GVK().GroupVersion().String(), Kind: "MySQLCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec:       v1.MySQLClusterSpec{Failover: v1.Failover{NotReadySeconds: 10, UnreachableSeconds: 5, WhenPrimaryUnreachable: v1.Replace}},
		Status: v1.MySQLClusterStatus{
			Phase: v1.PhaseFailed, ReadySummary: "1/2", FormerPrimary: "db-0", Epoch: 3, Revision: 12, RequiredAcks: 1, LeaseMilliseconds: 20_000, Selector: "app.kubernetes.io/instance=db",
			Members: []v1.Member{{Name: "db-0", Message: "does not answer"}, {Name: "db-1", Role: v1.RoleReplica, State: "CatchingUp", LagSeconds: &lag, Version: "9.7.4"}},
			Takeovers: []v1.Takeover{
				{Epoch: 2, From: "db-1", To: "db-0", Message: "mysqld of the primary db-1 has not been ready", FailureTime: &failed, StartTime: v1.NewMicroTime(at.Add(-time.Hour)), CompletionTime: &ended, Unacknowledged: "3e11fa47-71ca-11e1-9e33-c80aa9429562:8-9", Kept: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7"},
				{Epoch: 3, From: "db-0", StartTime: at},
			},
			Conditions: []metav1.Condition{
				{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ReplacingPrimary", Message: "another member takes over from db-0"}, {Type: "Durable", Status: metav1.ConditionTrue, Reason: "CommitsReplicated"},
				{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "ReplacingPrimary", Message: "in progress"},
			},
		},
	}
}

const seen = `shop/db: Failed, 1/2 ready, record 3.12, commits need 1 acknowledgements, lease 20s
  MEMBER  ROLE     STATE       LAG  VERSION  POD    RESTARTS  NODE
  db-0    -        -           -    -        -      -         -
  db-1    Replica  CatchingUp  2s   9.7.4    Ready  3         node-1
  db-0: does not answer
  Ready is False, ReplacingPrimary: another member takes over from db-0
  Reconciling is True, ReplacingPrimary: in progress
  takeover 2026-08-01 02:04:05Z, db-1 -> db-0, took over in 3m0s, after 3m2.5s without writes: mysqld of the primary db-1 has not been ready
    only db-1 had, and keeps in its volume: 3e11fa47-71ca-11e1-9e33-c80aa9429562:8-9
    a user made db-0 the primary, and all commits may be lost except 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7; known to be lost: -
  takeover 2026-08-01 03:04:05Z, db-0 -> ?, in progress
`

// api is an API server for one user. It gives what is in answers by path, and refuses the rest.
type api map[string]any

func (a api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer, found := a[r.URL.Path]
	if exec, isExec := answer.(http.HandlerFunc); isExec {
		exec(w, r)
		return
	}
	if !found {
		w.WriteHeader(http.StatusForbidden)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "ann may not"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// kubectl is what a user gets who calls the plugin.
func (a api) kubectl(t *testing.T, arguments ...string) (status int, out, err string) {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, namespace: shop}}], current-context: c}`, server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	nothing := func(string) string { return "" }
	status = program().Execute(t.Context(), cli.Process{Arguments: append(arguments, "--kubeconfig="+file), Environment: nothing, Out: &stdout, Err: &stderr})
	return status, stdout.String(), stderr.String()
}

const (
	clustersPath = "/apis/cr.mysqloperator.grtl.github.com/v1/namespaces/shop/mysqlclusters"
	podsPath     = "/api/v1/namespaces/shop/pods"
	reviewPath   = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	operatorPods = "/api/v1/namespaces/operators/pods"
)

func list(items ...any) any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
}

func podAt(name, node string) any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "operators", "name": name}, "spec": map[string]any{"nodeName": node}, "status": map[string]any{
		"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		"containerStatuses": []any{map[string]any{"name": "mysqld", "restartCount": 1}, map[string]any{"name": "agent", "restartCount": 2}},
	}}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	server := api{clustersPath: list(aCluster()), clustersPath + "/db": aCluster(), podsPath: list(podAt("db-1", "node-1"))}
	for _, arguments := range [][]string{{"status"}, {"status", "db"}} {
		status, out, err := server.kubectl(t, arguments...)
		if diff := cmp.Diff(seen, out); status != 0 || err != "" || diff != "" {
			t.Errorf("%v: exit status %d, %s (-want +got):\n%s", arguments, status, err, diff)
		}
	}
	if status, out, _ := (api{clustersPath: list()}).kubectl(t, "status"); status != 0 || out != "no MySQLCluster in namespace shop\n" {
		t.Errorf("exit status %d: %s", status, out)
	}
}

// TestStatusWithoutPermissions: without the Pods it shows the rest, and says what it lacks.
func TestStatusWithoutPermissions(t *testing.T) {
	t.Parallel()
	status, out, _ := api{clustersPath: list(aCluster())}.kubectl(t, "status")
	for _, want := range []string{"db-1    Replica  CatchingUp  2s   9.7.4    -    -         -", "Ready is False, ReplacingPrimary", "without permission to list pods: ann may not"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("exit status %d, and %q is not in\n%s", status, want, out)
		}
	}
	if status, _, err := (api{}).kubectl(t, "status"); status == 0 || !strings.Contains(err, "list MySQLClusters in namespace shop: ann may not") {
		t.Errorf("without permission to list clusters: exit status %d: %s", status, err)
	}
}

// TestExplainAsksTheOperator: it runs the operator's program, in the operator's container.
func TestExplainAsksTheOperator(t *testing.T) {
	t.Parallel()
	command := make(chan []string, 1)
	exec := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		command <- append(r.URL.Query()["command"], r.URL.Query().Get("container"))
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		stream, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer stream.Close()
		for _, content := range []string{"\x01explained\n", "\x03" + `{"status":"Success"}`} { // the output, and how the program ended
			if err := stream.WriteMessage(websocket.BinaryMessage, []byte(content)); err != nil {
				t.Error(err)
			}
		}
		_ = stream.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	})
	allowed := map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": true}}
	server := api{reviewPath: allowed, operatorPods: list(podAt("operator-1", "node-1")), operatorPods + "/operator-1/exec": exec}
	status, out, err := server.kubectl(t, "explain", "db", "--operator-namespace=operators")
	if status != 0 || out != "explained\n" {
		t.Errorf("exit status %d: %s%s", status, out, err)
	}
	if diff := cmp.Diff([]string{"/mysql-operator", "explain", "failover", "shop/db", "--output", "text", "mysql-operator"}, <-command); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
}

// TestExplainWithoutTheOperator: it shows what the status says, and names what it does not show.
func TestExplainWithoutTheOperator(t *testing.T) {
	t.Parallel()
	refused := map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": false}}
	server := api{reviewPath: refused, clustersPath + "/db": aCluster(), podsPath: list()}
	status, out, _ := server.kubectl(t, "explain", "db")
	for _, want := range []string{"ReplacingPrimary: another member takes over from db-0", "without permission to create pods/exec in namespace mysql-operator", "does not show what the members report now", "unreachableSeconds 5, whenPrimaryUnreachable Replace"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("exit status %d, and %q is not in\n%s", status, want, out)
		}
	}
	status, out, _ = server.kubectl(t, "explain", "db", "-o", "json")
	var decoded topology
	if err := json.Unmarshal([]byte(out), &decoded); status != 0 || err != nil || len(decoded.Unseen) != 2 || decoded.Status.FormerPrimary != "db-0" {
		t.Errorf("exit status %d: %+v: %v", status, decoded, err)
	}
}

// TestTheOperatorIsFound: by the label and the container's name that the manifests have.
func TestTheOperatorIsFound(t *testing.T) {
	t.Parallel()
	for _, one := range deploy.Operator(deploy.Account{Namespace: deploy.Name, Name: deploy.Name}, "image", nil) {
		deployment, ok := one.(*appsv1.Deployment)
		if !ok || deployment.Namespace != operatorName || deployment.Spec.Template.Labels[operatorLabel] != operatorName || deployment.Spec.Template.Spec.Containers[0].Name != operatorName {
			t.Errorf("the manifests have %+v", one)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{{"explain"}, {"status", "a", "b"}, {"status", "-o", "xml"}, {"fly"}} {
		if status, _, err := (api{}).kubectl(t, arguments...); status != cli.ExitUsage {
			t.Errorf("%v: exit status %d: %s", arguments, status, err)
		}
	}
}
