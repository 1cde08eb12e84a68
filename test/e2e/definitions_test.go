package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/kube"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestDefinitionsFollowTheImage changes the operator's image and nothing else: to a release whose ConfigMonitor has a second version, back,
// to one that stores that version, and back in vain, with two replicas and a client that never pauses.
func TestDefinitionsFollowTheImage(t *testing.T) { //nolint:paralleltest // it replaces the operator that all tests use
	sample.Rotate(t, 1)
	p := newPlace(t)
	loadProgram(t, p.kubectl.Config, "./cmd/mysql-operator", nextRelease, "-tags=twoversions")
	loadProgram(t, p.kubectl.Config, "./cmd/mysql-operator", afterNextRelease, "-tags=twoversions,storedv2")
	p.run("create", "configmap", "settings", "--namespace", p.namespace, "--from-literal=a=1")
	r := p.deploy(2)
	m := p.newMonitors()
	const versions = `{range .spec.versions[*]}{.name}={.served} {end}{.status.storedVersions} {.metadata.annotations.cr\.mysqloperator\.grtl\.github\.com/schema-version}`
	older := p.definition(configMonitors, versions)
	if strings.Contains(older, v2) {
		t.Fatalf("the definition is that of a later release, left over from something else: %s; kubectl delete crd %s", older, configMonitors)
	}

	t.Log("upgrade: both versions are served, v1 without an interruption")
	stop := m.write()
	m.second.Store(mayAppear)
	r.becomes(nextRelease)
	m.second.Store(mustServe)
	if got := p.definition(configMonitors, versions); got != `v1=true v2=true ["v1"] 1000` {
		t.Errorf("the definition was %q and is %q", older, got)
	}

	t.Log("while Pods of the new release are replaced, conversions are answered without an interruption")
	r.run("rollout", "restart", "deployment/mysql-operator", "--namespace", r.operator.Namespace)
	r.rolledOut()
	stop()
	m.allWell("upgrade")
	m.intact(v1)
	m.intact(v2)

	t.Log("rollback: the newer definition stays, and clients of v1 continue; no operator converts, and the operator reports that")
	m.second.Store(notServed)
	stop = m.write()
	r.becomes(r.operator.Image)
	stop()
	m.allWell("rollback")
	m.intact(v1)
	if got := p.definition(configMonitors, versions); got != `v1=true v2=true ["v1"] 1000` {
		t.Errorf("after the rollback the definition is %q", got)
	}
	r.saysWhatItLacks(m.writtenIn2())

	t.Log("the release after the next, skipping it: all that was written in v2 is there, and is stored in v2 now")
	stop = m.write()
	r.becomes(afterNextRelease)
	m.second.Store(mustServe)
	p.wait("all objects to be stored in v2", changeLimit, func(context.Context) (bool, string) {
		seen := p.definition(configMonitors, versions)
		return seen == `v1=true v2=true ["v2"] 1001`, seen
	})
	stop()
	m.allWell("second upgrade")
	m.intact(v1)
	m.intact(v2)

	t.Log("rollback to where v2 is unknown: refused, and both versions are served as before")
	stop = m.write()
	r.refuses(r.operator.Image, "objects are stored in version v2, which only the newer operator's webhook converts to v1. Run the newer operator")
	stop()
	m.allWell("refused rollback")
	m.intact(v1)
	m.intact(v2)
}

// saysWhatItLacks: an older operator beside a newer one's definition tells what does not work, by plan and event, and why a request fails.
func (r release) saysWhatItLacks(monitor string) {
	r.t.Helper()
	r.wait("a write in v2 to be refused", changeLimit, func(context.Context) (bool, string) {
		text, err := r.try("patch", "configmonitors.v2.magalix.com", monitor, "--type=merge", "--patch", `{"spec":{"targets":{"batch":1000}}}`, "--dry-run=server", "--request-timeout=5s")
		return err != nil, text
	})
	const message = "only the newer operator converts to and from version v2"
	ctx, cancel := r.context(time.Minute)
	defer cancel()
	plan, err := exec.CommandContext(ctx, r.operator.Binary, "crds", "plan", "--kinds=all", "--kubeconfig", r.kubectl.Config).CombinedOutput()
	if err != nil || !strings.Contains(string(plan), "NewerConverts") || !strings.Contains(string(plan), message) {
		r.t.Errorf("crds plan, error %v:\n%s", err, plan)
	}
	r.wait("the event on the definition", time.Minute, func(ctx context.Context) (bool, string) {
		events := r.definitionEvents(ctx, configMonitors)
		return strings.Contains(events, "Warning NewerConverts") && strings.Contains(events, message), events
	})
}

// TestDefinitionDeleted: what deletes a definition deletes its objects. The policy refuses that; done all the same, the definition comes
// back, it is told, and MySQL's data was never touched.
func TestDefinitionDeleted(t *testing.T) { //nolint:paralleltest // it deletes the clusters of all tests
	p := newPlace(t)
	p.onDevClusterOnly("the definition is deleted, with every MySQLCluster there is")
	p.start(1)
	write := p.open(p.cluster, p.password)
	p.waitValue(write, "SELECT 1", "1", answerLimit)
	p.exec(write, "CREATE DATABASE kept", "CREATE TABLE kept.rows_here (id INT PRIMARY KEY)", "INSERT INTO kept.rows_here VALUES (1), (2)")

	p.protect()
	was := p.definition(mysqlClusters, "{.metadata.uid}")
	p.wait("the definition to be known as one that has objects", time.Minute, func(context.Context) (bool, string) {
		seen := p.definition(mysqlClusters, `{.metadata.annotations.cr\.mysqloperator\.grtl\.github\.com/objects}`)
		return seen == "some", seen
	})
	p.wait("the policy to be in force", time.Minute, func(ctx context.Context) (bool, string) {
		_, err := p.kubectl.Run(ctx, "delete", "crd", mysqlClusters, "--dry-run=server")
		return err != nil, "the API server accepts the deletion"
	})
	text, err := p.try("delete", "crd", mysqlClusters, "--wait=false")
	remedy := "kubectl annotate crd " + mysqlClusters + " " + allowDeletion + "=true"
	if err == nil || !strings.Contains(text, "has objects, which would be deleted with it") || !strings.Contains(text, remedy) {
		t.Fatalf("with the policy, kubectl delete crd is answered %v: %s", err, text)
	}

	t.Log("said and done")
	p.run(strings.Fields(remedy)[1:]...)
	p.run("delete", "crd", mysqlClusters, "--timeout=60s")
	p.wait("the definition to be registered again", 30*time.Second, func(ctx context.Context) (bool, string) {
		uid, err := p.kubectl.Run(ctx, "get", "crd", mysqlClusters, "-o", "jsonpath={.metadata.uid}")
		return err == nil && uid != "" && uid != was, uid
	})
	p.wait("the event about that", time.Minute, func(ctx context.Context) (bool, string) {
		events := p.definitionEvents(ctx, mysqlClusters)
		return strings.Contains(events, "Warning DefinitionDeleted") && strings.Contains(events, "Normal DefinitionHealed"), events
	})

	t.Log("applied again, the cluster finds its data")
	p.wait("the definition to take objects", time.Minute, func(context.Context) (bool, string) {
		err := p.apply(p.manifest("replicas: 1"))
		return err == nil, "" + errorText(err)
	})
	p.settled(1)
	p.waitValue(p.open(p.cluster, p.password), "SELECT COUNT(*) FROM kept.rows_here", "2", answerLimit)
}

// protect installs the policy, as make protect does, until the test ends. One that was there stays.
func (p *place) protect() {
	p.t.Helper()
	const policy = "validatingadmissionpolicies,validatingadmissionpolicybindings"
	operator := kube.OperatorFromEnvironment(operatorNamespace)
	operator.Kinds = "all"
	ctx, cancel := p.context(time.Minute)
	defer cancel()
	manifest, err := operator.Manifests(ctx, "protection")
	if err != nil {
		p.t.Fatal(err)
	}
	if there := p.run("get", policy, "--field-selector=metadata.name=mysql-operator-definitions", "-o", "name"); there == "" {
		p.t.Cleanup(func() {
			ending, stop := context.WithTimeout(context.WithoutCancel(p.t.Context()), time.Minute)
			defer stop()
			if _, err := p.kubectl.Run(ending, "delete", policy, "mysql-operator-definitions", "--ignore-not-found"); err != nil {
				p.t.Errorf("remove the policy: %v", err)
			}
		})
	}
	if _, err := p.kubectl.Apply(ctx, manifest, "--server-side"); err != nil {
		p.t.Fatal(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
