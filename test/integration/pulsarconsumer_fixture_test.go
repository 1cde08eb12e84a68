package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer"
	"github.com/mysql-operator/mysql-operator/schema"
	pulsarv1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

func pulsarConsumers() schema.Kind {
	return schema.Kind{Group: schema.PulsarGroup, Version: "v1", Kind: "PulsarConsumer", Plural: "pulsarconsumers"}
}

// pulsarImage is what the operator takes for its own image.
const pulsarImage = "registry.example/mysql-operator:1"

func pulsarController() reconcile.Controller {
	return pulsarconsumer.Controller(pulsarConsumers(), pulsarImage)
}

// exchange is a namespace in which PulsarConsumers are served, with a kubelet of sorts.
type exchange struct {
	*place
	kubelet *kubelet
}

func newExchange(t *testing.T) *exchange {
	t.Helper()
	e := &exchange{place: newPlace(t, pool.Shared(t), pulsarConsumers())}
	e.grant(t, rulesOf(pulsarController()))
	e.kubelet = startKubelet(t, &shop{Server: e.Server, t: t, namespace: e.namespace})
	return e
}

func (e *exchange) consumers() dynamic.ResourceInterface {
	return e.Dynamic.Resource(pulsarConsumers().GVR()).Namespace(e.namespace)
}

func (e *exchange) deployments() dynamic.ResourceInterface {
	return e.Dynamic.Resource(appsResource("deployments")).Namespace(e.namespace)
}

// seedConsumer has the fields that the founding document gives the kind, and no labels.
const seedConsumer = `
apiVersion: pulsar.pulsarconsumer.krvarma.com/v1
kind: PulsarConsumer
metadata:
  name: %s
spec:
  serverAddress: pulsar://localhost:6650
  topic: my-topic
  subscriptionName: my-subscription
  replicas: 3
`

func (e *exchange) apply(t *testing.T, name string) {
	t.Helper()
	if _, err := e.consumers().Create(t.Context(), object(t, fmt.Sprintf(seedConsumer, name)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// change changes a consumer, or with a subresource that of it, as a user does.
func (e *exchange) change(t *testing.T, name, changes string, subresources ...string) {
	t.Helper()
	if _, err := e.consumers().Patch(t.Context(), name, types.MergePatchType, []byte(changes), metav1.PatchOptions{FieldManager: "someone"}, subresources...); err != nil {
		t.Fatal(err)
	}
}

// interfere changes the Deployment of a consumer.
func (e *exchange) interfere(t *testing.T, name, changes string) {
	t.Helper()
	if _, err := e.deployments().Patch(t.Context(), name+"-deployment", types.MergePatchType, []byte(changes), metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
}

func (e *exchange) read(ctx context.Context, name string) (pulsarv1.PulsarConsumer, error) {
	var consumer pulsarv1.PulsarConsumer
	found, err := e.consumers().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = schema.DecodeStrict(found, &consumer)
	}
	return consumer, err
}

// is waits until a consumer's Ready condition speaks of its latest generation with this reason, and the status is as wanted.
func (e *exchange) is(t *testing.T, name, reason string, holds func(pulsarv1.PulsarConsumerStatus) bool) pulsarv1.PulsarConsumer {
	t.Helper()
	var consumer pulsarv1.PulsarConsumer
	soon(t, func(ctx context.Context) string {
		found, err := e.read(ctx, name)
		if err != nil {
			return err.Error()
		}
		consumer = found
		if ready := readyIn(found.Status.Conditions); ready.Reason != reason || found.Status.ObservedGeneration != found.Generation || !holds(found.Status) {
			return fmt.Sprintf("%s says %s: %s; want %s; status %+v", name, ready.Reason, ready.Message, reason, found.Status)
		}
		return ""
	})
	return consumer
}

func anyhow(pulsarv1.PulsarConsumerStatus) bool { return true }

// serves waits until so many replicas are ready.
func (e *exchange) serves(t *testing.T, name string, replicas int32) pulsarv1.PulsarConsumer {
	t.Helper()
	return e.is(t, name, "AllReplicasReady", func(status pulsarv1.PulsarConsumerStatus) bool {
		return status.Replicas == replicas && status.ReadyReplicas == replicas
	})
}

func (e *exchange) deployment(t *testing.T, name string) appsv1.Deployment {
	t.Helper()
	found, err := e.deployments().Get(t.Context(), name+"-deployment", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var typed appsv1.Deployment
	if err := schema.Decode(found, &typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

// variable is what the consumers of a Deployment have in their environment.
func variable(deployment appsv1.Deployment, name string) string {
	for _, one := range deployment.Spec.Template.Spec.Containers[0].Env {
		if one.Name == name {
			return one.Value
		}
	}
	return ""
}

// table is what kubectl get prints of the consumers: the columns but those of -o wide, and the rows.
func (e *exchange) table(t *testing.T) (columns []string, rows [][]any) {
	t.Helper()
	client, err := rest.HTTPClientFor(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSuffix(e.Config.Host, "/") + "/apis/" + schema.PulsarGroup + "/v1/namespaces/" + e.namespace + "/pulsarconsumers"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(answer.Body).Decode(&table); err != nil {
		t.Fatal(err)
	}
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		}
	}
	for _, row := range table.Rows {
		rows = append(rows, row.Cells[:len(columns)])
	}
	return columns, rows
}

// deadWebhook is asked about every write of a Deployment in a namespace, and leads nowhere.
const deadWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: dead-in-%[1]s
webhooks:
- name: policy.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules:
  - {apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 1
`

// breakWebhook keeps everybody from writing Deployments, as an admission webhook that is down does, until repair is called. It returns when
// that is in force.
func (e *exchange) breakWebhook(t *testing.T) (repair func()) {
	t.Helper()
	webhooks := e.Dynamic.Resource(apischema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"})
	made, err := webhooks.Create(t.Context(), object(t, fmt.Sprintf(deadWebhook, e.namespace)), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	repair = func() {
		if err := webhooks.Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete the webhook: %v", err)
		}
	}
	t.Cleanup(repair)
	probe := object(t, fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: probe}\nspec:\n  replicas: 0"+podTemplate, "probe"))
	soon(t, func(ctx context.Context) string {
		if _, err := e.deployments().Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsInternalError(err) {
			return fmt.Sprintf("the webhook is not in force (error %v)", err)
		}
		return ""
	})
	return repair
}

// vanished waits until a consumer's Deployment is no more.
func (e *exchange) vanished(t *testing.T, name string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		_, err := e.deployments().Get(ctx, name+"-deployment", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("the Deployment is still there (error %v)", err)
	})
}
