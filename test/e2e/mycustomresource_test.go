package e2e

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// friendPod is the walk-through's, letter for letter. No registry is at hand here, so that its image is never pulled; it exists all the
// same.
const friendPod = `
apiVersion: v1
kind: Pod
metadata:
  name: funny-joe
spec:
  containers:
  - name: ubuntu
    image: ubuntu:latest
    # Just sleep forever
    command: [ "sleep" ]
    args: [ "infinity" ]
`

// describeLimit is within what time a status has to follow the Pod. It takes milliseconds; the rest is for a busy machine.
const describeLimit = 15 * time.Second

// TestMyCustomResourceWalkThrough follows the founding walk-through step by step.
func TestMyCustomResourceWalkThrough(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 1)
	p := newOpenPlace(t)
	if defined := p.run("get", "crds"); !strings.Contains(defined, "mycustomresources.poc.test.domain ") {
		t.Errorf("kubectl get crds does not show the definition:\n%s", defined)
	}
	samples, err := os.ReadFile("deploy/samples/mycustomresource.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := p.context(changeLimit)
	defer cancel()
	// The second sample looks for its Pod in the namespace default, which is not this test's own.
	said, err := p.kubectl.Apply(ctx, strings.ReplaceAll(string(samples), "namespace: default", "namespace: "+p.namespace), "-n", p.namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"mycustomresource.poc.test.domain/my-custom-resource-01 created", "mycustomresource.poc.test.domain/my-custom-resource-02 created"} {
		if !strings.Contains(said, line) {
			t.Errorf("kubectl apply does not say %q:\n%s", line, said)
		}
	}

	const healthy = "Spec:\n  Name:  funny-joe\nStatus:\n  Healthy:  true\n"
	p.describes("my-custom-resource-01", "Spec:\n  Name:  funny-joe\nStatus:\n  Conditions:\n", "Reason:                PodNotFound")
	p.mustApply(friendPod)
	described := p.describes("my-custom-resource-01", healthy, "Reason:                PodFound")
	if events := described[strings.LastIndex(described, "Events:"):]; strings.Join(strings.Fields(events), " ") != "Events: <none>" {
		t.Errorf("the walk-through shows no events, these are there:\n%s", events)
	}
	p.run("delete", "pods", "funny-joe", "-n", p.namespace)
	p.describes("my-custom-resource-01", "Status:\n  Conditions:\n", "Reason:                PodNotFound")

	t.Log("the same flow for the second")
	p.describes("my-custom-resource-02", "Reason:                PodNotFound")
	p.mustApply(strings.Replace(friendPod, "funny-joe", "jumpy-jane", 1))
	p.describes("my-custom-resource-02", "  Name:       jumpy-jane\n", "Status:\n  Healthy:  true\n")
	p.run("delete", "pods", "jumpy-jane", "-n", p.namespace)
	p.describes("my-custom-resource-02", "Status:\n  Conditions:\n", "Reason:                PodNotFound")
	columns := strings.Fields(strings.SplitN(p.run("get", "mycustomresources", "-n", p.namespace), "\n", 2)[0])
	if got := strings.Join(columns, " "); got != "NAME POD HEALTHY AGE" {
		t.Errorf("kubectl get shows the columns %s", got)
	}
}

// describes waits until kubectl describe prints all of this, with the walk-through's spelling of the kind, and returns what it prints.
func (p *place) describes(name string, texts ...string) string {
	p.t.Helper()
	described := ""
	p.wait("kubectl describe to show "+strings.Join(texts, " and "), describeLimit, func(ctx context.Context) (bool, string) {
		var err error
		described, err = p.kubectl.Run(ctx, "describe", "MyCustomresource", name, "-n", p.namespace)
		for _, text := range texts {
			if err != nil || !strings.Contains(described, text) {
				return false, described
			}
		}
		return true, described
	})
	return described
}
