package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/test/kube"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// The lab's manifests, letter for letter but for the ConfigMap's value, which as printed is no YAML.
const (
	labConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: flaskapp-config
data:
  config.cfg: |
    MSG="%s"
`
	labMonitor = `
apiVersion: magalix.com/v1
kind: ConfigMonitor
metadata:
  name: flakapp-config-monitor
spec:
  configmap: flaskapp-config
  podSelector:
    app: frontend
`
	labDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: frontend
  labels:
    app: frontend
spec:
  selector:
    matchLabels:
      app: frontend
  template:
    metadata:
      labels:
        app: frontend
    spec:
      containers:
      - name: app
        image: magalixcorp/flask:operator
        volumeMounts:
        - name: config-vol
          mountPath: /config
      volumes:
      - name: config-vol
        configMap:
          name: flaskapp-config
`
	labService = `
apiVersion: v1
kind: Service
metadata:
  name: frontend
spec:
  selector:
    app: frontend
  ports:
  - port: 80
`
	// labAvailable is what a Deployment needs so that clients do not notice a restart.
	labAvailable = `{"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"app","readinessProbe":` + labReadiness + `}]}}}}`
	// labReadiness makes a Pod ready when the application answers, not as soon as its program runs.
	labReadiness = `{"httpGet":{"path":"/","port":80},"periodSeconds":1}`
)

// labImage is the name that the lab gives its application. The dev cluster has the small one of these tests under it.
const labImage = "magalixcorp/flask:operator"

// newLab is a namespace for the lab, whose application is at hand.
func newLab(t *testing.T) *place {
	t.Helper()
	p := newOpenPlace(t)
	loadProgram(t, p.kubectl.Config, "./test/e2e/frontend", labImage)
	return p
}

// newOpenPlace is a namespace that, as those of the founding walk-throughs, does not ask Pods for anything.
func newOpenPlace(t *testing.T) *place {
	t.Helper()
	kubectl, err := kube.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: &recorder{T: t}, kubectl: kubectl, namespace: "e2e-" + strings.ToLower(rand.Text()[:6])}
	p.run("create", "namespace", p.namespace)
	t.Cleanup(p.tearDown)
	return p
}

func TestConfigMonitorLab(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	p := newLab(t)
	p.mustApply(fmt.Sprintf(labConfigMap, "Welcome to Kubernetes!"))
	p.mustApply(labMonitor)
	p.mustApply(labDeployment)
	p.mustApply(labService)
	p.says("Welcome to Kubernetes!")
	p.monitorIs("Watching")
	before := p.frontends()

	t.Log("the message changes: the Pod is another, and says it")
	p.mustApply(fmt.Sprintf(labConfigMap, "Welcome to Operators!"))
	p.says("Welcome to Operators!")
	p.monitorIs("Watching")
	if after := p.frontends(); slices.ContainsFunc(after, func(pod string) bool { return slices.Contains(before, pod) }) {
		t.Errorf("the Pods were %v and are %v: they were not restarted", before, after)
	}
	p.hasEvent("Restarted", "restarted: Deployment frontend")

	t.Log("a change of metadata restarts nothing, and a Pod without an owner is left alone")
	p.run("patch", "deployment", "frontend", "-n", p.namespace, "--patch", labAvailable)
	p.run("rollout", "status", "deployment/frontend", "-n", p.namespace, "--timeout=60s")
	p.run("run", "alone", "-n", p.namespace, "--image="+labImage, "--labels=app=frontend,alone=yes", `--overrides={"spec":{"containers":[{"name":"alone","image":"`+labImage+`","readinessProbe":`+labReadiness+`,"volumeMounts":[{"name":"c","mountPath":"/config"}]}],"volumes":[{"name":"c","configMap":{"name":"flaskapp-config"}}]}}`)
	p.run("wait", "pod", "alone", "-n", p.namespace, "--for=condition=Ready", "--timeout=60s")
	p.run("annotate", "configmap", "flaskapp-config", "-n", p.namespace, "note=nothing in the data")
	before = p.frontends()

	t.Log("clients ask without a pause, and do not notice the restart")
	asking := p.ask()
	p.mustApply(fmt.Sprintf(labConfigMap, "Welcome to unnoticed restarts!"))
	p.monitorIs("PodsLeftAlone")
	asked, failures := asking()
	if len(failures) > 0 || asked == 0 {
		t.Errorf("of %d requests %d failed: %v", asked, len(failures), failures)
	}
	kept := slices.DeleteFunc(p.frontends(), func(pod string) bool { return !slices.Contains(before, pod) })
	if !slices.Equal(kept, []string{"pod/alone"}) {
		t.Errorf("of the Pods %v these were kept: %v; want the one that no controller would create again", before, kept)
	}
	if revisions := strings.Fields(p.run("get", "rs", "-n", p.namespace, "-o", "name")); len(revisions) != 4 {
		t.Errorf("the Deployment has %d revisions, want 4: made, restarted, made available, restarted", len(revisions))
	}
	t.Logf("%d requests were answered", asked)
}

// frontends are the application's Pods now, but those that are ending.
func (p *place) frontends() []string {
	p.t.Helper()
	const path = `jsonpath={range .items[*]}pod/{.metadata.name} {.metadata.deletionTimestamp}{"\n"}{end}`
	staying := []string{}
	for line := range strings.Lines(p.run("get", "pods", "-n", p.namespace, "-l", "app=frontend", "-o", path)) {
		if fields := strings.Fields(line); len(fields) == 1 {
			staying = append(staying, fields[0])
		}
	}
	return staying
}

// client asks the application through its Service, as the API server forwards to it.
type client struct {
	http *http.Client
	url  string
}

func (p *place) client() client {
	p.t.Helper()
	config, err := p.kubectl.Rest()
	if err != nil {
		p.t.Fatal(err)
	}
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		p.t.Fatal(err)
	}
	return client{http: made, url: config.Host + "/api/v1/namespaces/" + p.namespace + "/services/frontend:80/proxy/"}
}

// message is what the application answers.
func (c client) message(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", response.Status)
	}
	return strings.TrimSpace(string(content)), err
}

// says waits until the application gives this message.
func (p *place) says(want string) {
	p.t.Helper()
	asking := p.client()
	p.wait("the application to say "+want, changeLimit, func(ctx context.Context) (bool, string) {
		message, err := asking.message(ctx)
		return err == nil && message == want, fmt.Sprintf("%q, %v", message, err)
	})
}

// monitorIs waits until the monitor is at rest with this reason and has restarted for what the ConfigMap holds.
func (p *place) monitorIs(reason string) {
	p.t.Helper()
	const path = `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason}`
	p.wait("the monitor to be "+reason, changeLimit, func(ctx context.Context) (bool, string) {
		seen, err := p.kubectl.Run(ctx, "get", "configmonitor", "flakapp-config-monitor", "-n", p.namespace, "-o", path)
		return err == nil && seen == "True "+reason, seen
	})
}

// ask asks the application without a pause, until the function it returns is called, which says how often and what failed.
func (p *place) ask() func() (asked int, failures []string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	asking := p.client()
	var running sync.WaitGroup
	asked, failures := 0, []string{}
	running.Go(func() {
		for {
			message, err := asking.message(ctx)
			if ctx.Err() != nil {
				return
			}
			asked++
			if err != nil || !strings.HasPrefix(message, "Welcome to") {
				failures = append(failures, fmt.Sprintf("%q, %v", message, err))
			}
		}
	})
	return func() (int, []string) {
		cancel()
		running.Wait()
		return asked, failures
	}
}
