//go:build !without_pulsar

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/kube"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// pulsarServer runs the stand-in for Pulsar, since there is none to be had. It keeps nothing when it restarts.
const pulsarServer = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: pulsar}
spec:
  strategy: {type: Recreate} # two at once would be two topics
  selector: {matchLabels: {app: pulsar}}
  template:
    metadata: {labels: {app: pulsar}}
    spec:
      enableServiceLinks: false
      containers:
      - name: pulsar
        image: e2e/pulsarserver:latest
        imagePullPolicy: IfNotPresent
        env: [{name: ADVERTISED_ADDRESS, value: "pulsar:6650"}]
        ports: [{containerPort: 6650}]
        readinessProbe: {tcpSocket: {port: 6650}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: pulsar}
spec: {selector: {app: pulsar}, ports: [{port: 6650}]}
`

// seedPulsarConsumer has the fields that the founding document gives the kind.
const seedPulsarConsumer = `
apiVersion: pulsar.pulsarconsumer.krvarma.com/v1
kind: PulsarConsumer
metadata:
  name: pulsarconsumer-sample
spec:
  serverAddress: pulsar://pulsar:6650
  topic: my-topic
  subscriptionName: my-subscription
  replicas: 2
`

// TestPulsarConsumerWalkThrough goes the way of the founding document: apply, look at the Pods, send a message, see it in the log.
func TestPulsarConsumerWalkThrough(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	p := newLab(t)
	loadProgram(t, p.kubectl.Config, "./test/e2e/pulsarserver", "e2e/pulsarserver:latest")
	p.mustApply(pulsarServer)
	p.run("rollout", "status", "deployment/pulsar", "-n", p.namespace, "--timeout=90s")
	p.mustApply(seedPulsarConsumer)
	p.run("wait", "pulsarconsumer/pulsarconsumer-sample", "-n", p.namespace, "--for=condition=Ready", "--timeout=90s")

	columns := strings.Fields(p.run("get", "pulsarconsumers", "-n", p.namespace))
	want := "NAME SERVER TOPIC SUBSCRIPTION REPLICAS pulsarconsumer-sample pulsar://pulsar:6650 my-topic my-subscription 2"
	if got := strings.Join(columns, " "); got != want {
		t.Errorf("kubectl get prints %q, want %q", got, want)
	}
	if pods := p.run("get", "pods", "-n", p.namespace, "-l", "app.kubernetes.io/instance=pulsarconsumer-sample", "-o", "name"); strings.Count(pods, "pod/pulsarconsumer-sample-deployment-") != 2 {
		t.Errorf("the Pods are %s", pods)
	}

	p.produce("pulsar-producer", "Sample Message")
	p.logged("Sample Message")

	t.Log("Pulsar goes away, and the status says so; it comes back, and so do the consumers")
	p.run("scale", "deployment/pulsar", "-n", p.namespace, "--replicas=0")
	p.run("wait", "pulsarconsumer/pulsarconsumer-sample", "-n", p.namespace, "--for=condition=Ready=false", "--timeout=90s")
	p.run("wait", "pulsarconsumer/pulsarconsumer-sample", "-n", p.namespace, "--for=jsonpath={.status.readyReplicas}=0", "--timeout=90s")
	p.run("scale", "deployment/pulsar", "-n", p.namespace, "--replicas=1")
	p.run("rollout", "status", "deployment/pulsar", "-n", p.namespace, "--timeout=90s")
	p.run("wait", "pulsarconsumer/pulsarconsumer-sample", "-n", p.namespace, "--for=condition=Ready", "--timeout=90s")
	p.produce("pulsar-producer-again", "Another Message")
	p.logged("Another Message")

	p.run("delete", "pulsarconsumer", "pulsarconsumer-sample", "-n", p.namespace, "--timeout=60s")
	p.run("wait", "deployment/pulsarconsumer-sample-deployment", "-n", p.namespace, "--for=delete", "--timeout=60s")
	p.run("delete", "deployments,pods", "--all", "-n", p.namespace, "--timeout=60s") // the tear-down waits for Pods
}

// produce sends a message as the document does, from a Pod, which is where the server can be reached.
func (p *place) produce(pod, message string) {
	p.t.Helper()
	p.mustApply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: OnFailure
  containers:
  - name: produce
    image: %s
    imagePullPolicy: IfNotPresent
    args: [produce]
    env: [{name: PULSAR_SERVER, value: "pulsar://pulsar:6650"}, {name: PULSAR_TOPIC, value: my-topic}, {name: PULSAR_MESSAGE, value: %q}]
`, pod, kube.OperatorFromEnvironment(p.namespace).Image, message))
	p.run("wait", "pod/"+pod, "-n", p.namespace, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s")
}

// logged waits until one of the consumers has logged a message.
func (p *place) logged(message string) {
	p.t.Helper()
	p.wait("the message in a consumer's log", 30*time.Second, func(context.Context) (bool, string) {
		log := p.run("logs", "-n", p.namespace, "-l", "app.kubernetes.io/instance=pulsarconsumer-sample", "--tail=-1")
		return strings.Contains(log, fmt.Sprintf(`"msg":"message","payload":%q`, message)), log
	})
}
