package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulsarv1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

func TestPulsarConsumerFollowsTheDocument(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	o := e.operate(t, nil, pulsarController())
	e.apply(t, "orders")
	consumer := e.serves(t, "orders", 3)
	if status := consumer.Status; status.Server != "pulsar://localhost:6650" || status.Topic != "my-topic" || status.Subscription != "my-subscription" {
		t.Errorf("the status is %+v", status)
	}
	made := e.deployment(t, "orders")
	for name, want := range map[string]string{"PULSAR_SERVER": "pulsar://localhost:6650", "PULSAR_TOPIC": "my-topic", "PULSAR_SUBSCRIPTION_NAME": "my-subscription"} {
		if got := variable(made, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if container := made.Spec.Template.Spec.Containers[0]; container.Image != pulsarImage || strings.Join(container.Args, " ") != "consume" {
		t.Errorf("it runs %s %v", container.Image, container.Args)
	}
	columns, rows := e.table(t)
	same(t, columns, []string{"Name", "Server", "Topic", "Subscription", "Replicas"})
	same(t, rows, [][]any{{"orders", "pulsar://localhost:6650", "my-topic", "my-subscription", float64(3)}})

	t.Log("kubectl scale, and autoscalers")
	e.change(t, "orders", `{"spec":{"replicas":5}}`, "scale")
	e.serves(t, "orders", 5)
	scale, err := e.consumers().Get(t.Context(), "orders", metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	status, _ := scale.Object["status"].(map[string]any)
	same(t, status, map[string]any{"replicas": int64(5), "selector": "app.kubernetes.io/instance=orders,app.kubernetes.io/managed-by=mysql-operator,app.kubernetes.io/name=pulsar-consumer"})
	e.change(t, "orders", `{"spec":{"replicas":0}}`)
	e.is(t, "orders", "ScaledToZero", func(status pulsarv1.PulsarConsumerStatus) bool { return status.Replicas == 0 })
	e.change(t, "orders", `{"spec":{"replicas":2}}`)
	e.serves(t, "orders", 2)

	t.Log("another topic, another image: the Pods are others")
	e.change(t, "orders", `{"spec":{"topic":"another","image":"mine:1"}}`)
	consumer = e.serves(t, "orders", 2)
	made = e.deployment(t, "orders")
	if got := variable(made, "PULSAR_TOPIC"); got != "another" || consumer.Status.Topic != "another" || made.Spec.Template.Spec.Containers[0].Image != "mine:1" || len(made.Spec.Template.Spec.Containers[0].Args) != 0 {
		t.Errorf("the topic is %q, the status %+v, the container %+v", got, consumer.Status, made.Spec.Template.Spec.Containers[0])
	}

	t.Log("what a user does to the Deployment does not last")
	e.interfere(t, "orders", `{"spec":{"replicas":9}}`)
	soon(t, func(context.Context) string {
		if now := *e.deployment(t, "orders").Spec.Replicas; now != 2 {
			return fmt.Sprintf("the Deployment has %d replicas", now)
		}
		return ""
	})
	if err := e.deployments().Delete(t.Context(), "orders-deployment", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	soon(t, func(ctx context.Context) string {
		found, err := e.deployments().Get(ctx, "orders-deployment", metav1.GetOptions{})
		if err != nil || found.GetUID() == made.UID {
			return fmt.Sprintf("the Deployment is not made again (error %v)", err)
		}
		return ""
	})
	e.serves(t, "orders", 2)
	e.quiet(t, o, "orders")

	t.Log("deleting takes the Deployment along")
	if err := e.consumers().Delete(t.Context(), "orders", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.vanished(t, "orders")
	if log := o.log.all(); len(log) != 0 {
		t.Errorf("the operator logged errors: %v", log)
	}
}

// quiet lets the operator look at a consumer at rest, and fails the test if it writes.
func (e *exchange) quiet(t *testing.T, o *operating, name string) {
	t.Helper()
	// What was done last sets passes and Kubernetes' own controllers in motion.
	writes, since := -1, time.Now()
	soon(t, func(context.Context) string {
		if now := len(o.wire.written()); now != writes {
			writes, since = now, time.Now()
		}
		if time.Since(since) < 3*time.Second {
			return fmt.Sprintf("there were %d writes, and still more", writes)
		}
		return ""
	})
	for round := range 3 {
		before := o.passes(t)
		e.change(t, name, fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d"}}}`, round))
		soon(t, func(context.Context) string {
			if o.passes(t) == before {
				return "no pass was made"
			}
			return ""
		})
	}
	if after := o.wire.written(); len(after) != writes {
		t.Errorf("at rest there were writes: %v", after[writes:])
	}
}

func TestPulsarConsumerChangedWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	e.apply(t, "early")
	e.apply(t, "gone")
	first := e.operate(t, nil, pulsarController())
	e.serves(t, "early", 3)
	e.serves(t, "gone", 3)
	first.finish(t)

	e.change(t, "early", `{"spec":{"topic":"another","replicas":1}}`)
	e.interfere(t, "early", `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}`)
	if err := e.consumers().Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.operate(t, nil, pulsarController())
	e.serves(t, "early", 1)
	made := e.deployment(t, "early")
	if grace := *made.Spec.Template.Spec.TerminationGracePeriodSeconds; variable(made, "PULSAR_TOPIC") != "another" || grace != 30 {
		t.Errorf("the topic is %s, the grace period %d", variable(made, "PULSAR_TOPIC"), grace)
	}
	e.vanished(t, "gone")
}

func TestPulsarConsumerLeavesForeignDeploymentsAlone(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	e := newExchange(t)
	foreign := object(t, fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: orders-deployment}\nspec:\n  replicas: 0"+podTemplate, "foreign"))
	if _, err := e.deployments().Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.operate(t, nil, pulsarController())
	e.apply(t, "orders")
	consumer := e.is(t, "orders", "ForeignObject", anyhow)
	if message := readyIn(consumer.Status.Conditions).Message; !strings.Contains(message, "orders-deployment exists already and was not made by this operator: delete or rename it") {
		t.Errorf("the message is %q", message)
	}
	if consumer.Status.Server != "" {
		t.Errorf("the status tells of what was not done: %+v", consumer.Status)
	}
	if image := e.deployment(t, "orders").Spec.Template.Spec.Containers[0].Image; image != "none" {
		t.Errorf("the foreign Deployment runs %s", image)
	}

	t.Log("once it is gone, the consumers come")
	if err := e.deployments().Delete(t.Context(), "orders-deployment", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.serves(t, "orders", 3)
}

func TestPulsarConsumerSaysWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	e.make(t, "resourcequotas", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: small}, spec: {hard: {pods: 1}}}")
	soon(t, func(context.Context) string {
		if _, counted := e.get(t, "resourcequotas", "small").Object["status"].(map[string]any)["hard"]; !counted {
			return "the quota is not in force"
		}
		return ""
	})
	e.operate(t, nil, pulsarController())
	e.apply(t, "orders")
	consumer := e.is(t, "orders", "PodsRefused", anyhow)
	if message := readyIn(consumer.Status.Conditions).Message; !strings.Contains(message, "exceeded quota: small") {
		t.Errorf("the message is %q", message)
	}

	t.Log("the quota is raised, but the Pods do not get ready")
	e.kubelet.setBroken(true)
	e.patch(t, "resourcequotas", "small", `{"spec":{"hard":{"pods":"10"}}}`)
	e.interfere(t, "orders", `{"metadata":{"annotations":{"try":"again"}}}`)
	e.is(t, "orders", "ReplicasNotReady", func(status pulsarv1.PulsarConsumerStatus) bool { return status.Replicas == 3 })
	e.kubelet.setBroken(false)
	e.serves(t, "orders", 3)
}

// TestPulsarConsumerTellsWhatCannotBeWritten: while an admission webhook does not answer, consumers are not what they should be, and none
// says that it is.
func TestPulsarConsumerTellsWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	e.operate(t, nil, pulsarController())
	e.apply(t, "orders")
	e.serves(t, "orders", 3)
	repair := e.breakWebhook(t)
	e.change(t, "orders", `{"spec":{"topic":"another"}}`)
	changed := e.is(t, "orders", "ApplyFails", anyhow)
	says(t, readyIn(changed.Status.Conditions).Message, "cannot write the Deployment", "webhook")
	same(t, changed.Status.Topic, "my-topic")
	same(t, changed.Status.ReadyReplicas, int32(3))
	e.apply(t, "bills")
	same(t, e.is(t, "bills", "ApplyFails", anyhow).Status.Topic, "")

	t.Log("it answers again")
	repair()
	same(t, e.serves(t, "orders", 3).Status.Topic, "another")
	e.serves(t, "bills", 3)
}

// TestPulsarConsumerSurvivesEveryCrash lets the operator die at each of its writes in turn, before the API server has got it and after.
// Whoever takes over ends with the same Deployment, made once.
func TestPulsarConsumerSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	clean := newExchange(t)
	undisturbed := clean.operate(t, nil, pulsarController())
	clean.apply(t, "orders")
	clean.serves(t, "orders", 3)
	writes := undisturbed.wire.written()
	if len(writes) < 4 {
		t.Fatalf("a Deployment, statuses and events take more writes than these: %v", writes)
	}
	survivesCrashes(t, crashesUpTo(len(writes)), func(t *testing.T, at crash) bool {
		e := newExchange(t)
		doomed := e.operate(t, nil, pulsarController())
		doomed.wire.dieAt(at.write, at.sent)
		e.apply(t, "orders")
		soon(t, func(ctx context.Context) string {
			found, err := e.read(ctx, "orders")
			if doomed.wire.isDead() || err == nil && readyIn(found.Status.Conditions).Status == metav1.ConditionTrue {
				return ""
			}
			return "the operator has neither died nor come to an end"
		})
		doomed.finish(t)
		e.operate(t, nil, pulsarController())
		e.serves(t, "orders", 3)
		if made := e.deployment(t, "orders"); made.Generation != 1 {
			t.Errorf("the Deployment was changed after it was made: generation %d", made.Generation)
		}
		return doomed.wire.isDead()
	})
}
