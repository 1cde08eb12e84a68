package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	// Images of releases that never were, made and loaded by the test that needs them: ConfigMonitor has a second version, which is served
	// first, and then stored as well.
	nextRelease      = "mysql-operator:two-versions"
	afterNextRelease = "mysql-operator:v2-stored"

	mysqlClusters  = "mysqlclusters.cr.mysqloperator.grtl.github.com"
	configMonitors = "configmonitors.magalix.com"
	allowDeletion  = "cr.mysqloperator.grtl.github.com/allow-deletion"
)

// release is an operator that runs as a Deployment in a namespace of its own, and takes the place of the one that all tests use.
type release struct {
	*place
	operator kube.Operator
}

// deploy replaces the operator of all tests, until the test ends. Definitions of ConfigMonitor are put back then to what this release
// brings, so nothing may need the test's own any more.
func (p *place) deploy(replicas int) release {
	p.t.Helper()
	r := release{place: p, operator: kube.OperatorFromEnvironment(p.namespace + "-operator")}
	r.operator.Kinds = "all"
	p.t.Cleanup(r.remove)
	p.run("delete", "pod", "mysql-operator", "--namespace", operatorNamespace, "--ignore-not-found")
	p.run("create", "namespace", r.operator.Namespace)
	p.run("label", "namespace", r.operator.Namespace, "pod-security.kubernetes.io/enforce=restricted")
	for _, part := range []string{"rbac", "operator"} {
		r.apply(part)
	}
	// The images of releases contain the operator's program only. Members that users have on this Kubernetes cluster keep their agents.
	r.run("set", "env", "deployment/mysql-operator", "MYSQL_OPERATOR_AGENT_IMAGE="+r.operator.Image, "--namespace", r.operator.Namespace)
	r.run("scale", "deployment/mysql-operator", "--namespace", r.operator.Namespace, fmt.Sprintf("--replicas=%d", replicas))
	r.rolledOut()
	return r
}

func (r release) apply(part string) {
	r.t.Helper()
	manifest, err := r.operator.Manifests(r.t.Context(), part)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.kubectl.Apply(r.t.Context(), manifest, "--server-side"); err != nil {
		r.t.Fatal(err)
	}
}

// remove leaves the cluster as all tests expect it.
func (r release) remove() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), 4*time.Minute)
	defer cancel()
	try := func(arguments ...string) string {
		text, err := r.kubectl.Run(ctx, arguments...)
		if err != nil {
			r.t.Errorf("clean up: %v", err)
		}
		return text
	}
	if r.t.Failed() {
		r.t.Log(try("get", "pods,endpointslices", "--namespace", r.operator.Namespace, "-o", "wide", "--show-labels"))
		r.t.Log(try("logs", "--selector=app.kubernetes.io/name=mysql-operator", "--namespace", r.operator.Namespace, "--tail=30", "--prefix"))
	}
	// Delete all monitors at once, while an operator still converts them. Otherwise the definition, and the namespace with it, would remain.
	try("delete", "--raw", "/apis/magalix.com/v1/namespaces/"+r.namespace+"/configmonitors")
	try("delete", "namespace", r.operator.Namespace, "--ignore-not-found")
	for _, name := range []string{"mysql-operator", "mysql-operator-definitions"} {
		try("delete", "clusterrole,clusterrolebinding", name+":"+r.operator.Namespace, "--ignore-not-found")
	}
	try("annotate", "crd", configMonitors, "--overwrite", allowDeletion+"=true")
	try("delete", "crd", configMonitors, "--ignore-not-found", "--timeout=60s")
	if err := startOperator(ctx, r.kubectl); err != nil {
		r.t.Error(err)
	}
	// kubectl caches for hours that v2 exists, and would send other tests to it. This command makes kubectl ask the API server again.
	try("api-resources", "--api-group=magalix.com")
}

// refuses changes the image to a release that does not start here: Kubernetes then keeps the Pods of the present one. The reason that its
// Pods log is waited for, and the image is put back.
func (r release) refuses(image, reason string) {
	r.t.Helper()
	r.run("set", "image", "deployment/mysql-operator", "mysql-operator="+image, "--namespace", r.operator.Namespace)
	const refused = `jsonpath={range .items[?(@.spec.containers[0].image=="%s")]}{.metadata.name} {.status.containerStatuses[?(@.name=="mysql-operator")].lastState.terminated.exitCode}{"\n"}{end}`
	r.wait("the Pod of "+image+" to end with the reason", changeLimit, func(ctx context.Context) (bool, string) {
		pods, err := r.kubectl.Run(ctx, "get", "pods", "--namespace", r.operator.Namespace, "-o", fmt.Sprintf(refused, image))
		name, code, _ := strings.Cut(strings.TrimSpace(pods), " ")
		if err != nil || code != "1" {
			return false, pods
		}
		log, err := r.kubectl.Run(ctx, "logs", name, "--previous", "--namespace", r.operator.Namespace)
		return err == nil && strings.Contains(log, reason), log
	})
	if ready := r.run("get", "deployment/mysql-operator", "--namespace", r.operator.Namespace, "-o", "jsonpath={.status.readyReplicas}"); ready != "2" {
		r.t.Errorf("while a release refuses to start, %s operators are ready; want the 2 of before", ready)
	}
	r.run("rollout", "undo", "deployment/mysql-operator", "--namespace", r.operator.Namespace)
	r.rolledOut()
}

// becomes changes the image and nothing else.
func (r release) becomes(image string) {
	r.t.Helper()
	r.run("set", "image", "deployment/mysql-operator", "mysql-operator="+image, "--namespace", r.operator.Namespace)
	r.rolledOut()
}

func (r release) rolledOut() {
	r.t.Helper()
	r.run("rollout", "status", "deployment/mysql-operator", "--namespace", r.operator.Namespace, "--timeout=90s")
}

// definition reads fields of a definition.
func (p *place) definition(name, path string) string {
	p.t.Helper()
	return p.run("get", "crd", name, "-o", "jsonpath="+path)
}

// definitionEvents are the reasons of the events on the definition that is there now.
func (p *place) definitionEvents(ctx context.Context, name string) string {
	const path = `jsonpath={range .items[*]}{.type} {.reason} {.regarding.uid}: {.note}{"\n"}{end}`
	text, err := p.kubectl.Run(ctx, "get", "events.v1.events.k8s.io", "--namespace", "default", "--field-selector=regarding.kind=CustomResourceDefinition,regarding.name="+name, "-o", path)
	if err != nil {
		return err.Error()
	}
	return text
}

// onDevClusterOnly skips a test that does to definitions what no user would want on their own Kubernetes cluster.
func (p *place) onDevClusterOnly(why string) {
	p.t.Helper()
	if !kube.IsDevCluster(p.kubectl.Config) {
		p.t.Skipf("only on the dev cluster: %s", why)
	}
}
