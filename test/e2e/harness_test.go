package e2e

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/test/kube"
)

// operatorNamespace is where the operator under test runs, as in the README.
const operatorNamespace = "default"

const (
	readyLimit  = 6 * time.Minute
	changeLimit = 4 * time.Minute
	// stopLimit is for a Pod of a mysqld to stop: its grace period, and a minute. If SIGTERM arrives while replication threads start, mysqld
	// may wait for itself without end, and kubelet kills it (seen on 9.7.4).
	stopLimit = 6 * time.Minute
	// answerLimit is for what is so already: a server beside others on a busy machine may take a while to answer.
	answerLimit = time.Minute
)

// atATime is how many tests run at once unless -parallel says otherwise: Pods take more time to come and go than processor time.
const atATime = "5"

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", atATime) // never fails: the flag is there
	flag.Parse()
	code, err := setUp(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // TestMain is main here
}

func setUp(m *testing.M) (int, error) {
	if err := os.Chdir("../.."); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) //nolint:forbidigo // TestMain is main here
	defer cancel()
	kubectl, err := kube.FromEnvironment()
	if err != nil {
		return 0, err
	}
	if err := kube.DeleteDeployedOperators(ctx, kubectl); err != nil {
		return 0, err
	}
	if err := startOperator(ctx, kubectl); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func startOperator(ctx context.Context, kubectl kube.Kubectl) error {
	operator := kube.OperatorFromEnvironment(operatorNamespace)
	operator.Kinds = "all"
	return operator.Run(ctx, kubectl)
}

// place is one test's own namespace with a MySQL cluster of its own name.
type place struct {
	t       *recorder
	kubectl kube.Kubectl
	objects kube.Objects
	// namespace and cluster differ between tests, also in the processes that tests look for on the machine.
	namespace, cluster, password string
	// last is done when the namespace is gone.
	last []func(context.Context) error
}

func newPlace(t *testing.T) *place {
	t.Helper()
	kubectl, err := kube.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kubectl.Objects()
	if err != nil {
		t.Fatal(err)
	}
	suffix := strings.ToLower(rand.Text()[:6])
	p := &place{t: &recorder{T: t}, kubectl: kubectl, objects: objects, namespace: "e2e-" + suffix, cluster: "c" + suffix, password: `it's "quoted" \ and übel`}
	p.run("create", "namespace", p.namespace)
	p.run("label", "namespace", p.namespace, "pod-security.kubernetes.io/enforce=restricted")
	t.Cleanup(p.tearDown)
	return p
}

// tearDown shows what a failed test left, and removes it.
func (p *place) tearDown() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), stopLimit+changeLimit)
	defer cancel()
	if p.t.Failed() {
		for _, arguments := range [][]string{
			{"get", "mc,mb,mbi,sts,jobs,pods,pvc,svc", "-n", p.namespace, "-o", "wide"},
			{"get", "mc,mb,mbi", "-n", p.namespace, "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name}: {.spec} {.status}{\"\\n\"}{end}"},
			{"logs", "-n", p.namespace, "-l", "app.kubernetes.io/name=mysql-backup", "--prefix", "--tail=40"},
			{"logs", "-n", p.namespace, "-l", "app.kubernetes.io/name=mysql", "--prefix", "--all-containers", "--tail=12"},
			{"get", "events", "-n", p.namespace, "--sort-by=.lastTimestamp"},
			{"logs", "mysql-operator", "-n", operatorNamespace, "--tail=60"},
		} {
			text, _ := p.kubectl.Run(ctx, arguments...)
			p.t.Logf("kubectl %s\n%s", strings.Join(arguments, " "), ends(text, 30))
		}
		p.showMembers(ctx)
		p.t.Logf("%s failed:\n%s", p.t.Name(), p.t.reasons())
	}
	// The members first: Kubernetes looks at a namespace that goes only once half of its Pods' longest grace period is over, and that is
	// minutes.
	_, _ = p.kubectl.Run(ctx, "delete", "mc,mb,mbi", "--all", "-n", p.namespace, "--wait=false", "--ignore-not-found")
	_, _ = p.kubectl.Run(ctx, "wait", "pods", "--all", "--for=delete", "-n", p.namespace, "--timeout="+stopLimit.String())
	if _, err := p.kubectl.Run(ctx, "delete", "namespace", p.namespace, "--wait", "--timeout=180s", "--ignore-not-found"); err != nil {
		p.t.Errorf("the namespace does not go away: %v", err)
	}
	for _, do := range p.last {
		if err := do(ctx); err != nil {
			p.t.Error(err)
		}
	}
}

// ends are the last lines of a text.
func ends(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (p *place) context(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.t.Context(), limit)
}

func (p *place) run(arguments ...string) string {
	p.t.Helper()
	return p.runFor(changeLimit, arguments...)
}

// deletePod deletes a Pod and waits until it has stopped.
func (p *place) deletePod(name string) {
	p.t.Helper()
	p.runFor(stopLimit, "delete", "pod", name, "-n", p.namespace)
}

func (p *place) runFor(limit time.Duration, arguments ...string) string {
	p.t.Helper()
	ctx, cancel := p.context(limit)
	defer cancel()
	text, err := p.kubectl.Run(ctx, arguments...)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// try runs kubectl in the test's namespace and hands its error over.
func (p *place) try(arguments ...string) (string, error) {
	ctx, cancel := p.context(changeLimit)
	defer cancel()
	return p.kubectl.Run(ctx, append(arguments, "-n", p.namespace)...)
}

func (p *place) apply(manifest string) error {
	ctx, cancel := p.context(changeLimit)
	defer cancel()
	_, err := p.kubectl.Apply(ctx, manifest, "-n", p.namespace)
	return err
}

func (p *place) mustApply(manifest string) {
	p.t.Helper()
	if err := p.apply(manifest); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) wait(what string, limit time.Duration, check func(context.Context) (bool, string)) {
	p.t.Helper()
	if err := kube.Wait(p.t.Context(), what, limit, check); err != nil {
		p.t.Fatal(err)
	}
}

// secret is the manifest of the Secret with a root password.
func secret(password string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: my-secret\nstringData:\n  password: %q\n", password)
}

// manifest is the founding document's, under the test's own name, with further lines of spec. Without a line of resources, its mysqlds are
// small: with MySQL's defaults, each start takes another second of processor time.
func (p *place) manifest(lines ...string) string {
	if slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "resources:") }) {
		return p.founding(lines...)
	}
	return p.founding(slices.Concat(lines, []string{"resources: {requests: {memory: 128Mi}, limits: {memory: 512Mi}}"})...)
}

// founding is the same with nothing but the given lines.
func (p *place) founding(lines ...string) string {
	text := fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLCluster\nmetadata:\n  name: %s\nspec:\n  secret: my-secret\n", p.cluster)
	for _, line := range lines {
		text += "  " + line + "\n"
	}
	return text
}

// field reads a field of the cluster resource.
func (p *place) field(ctx context.Context, path string) string {
	text, err := p.objects.Field(ctx, mysql("mysqlclusters"), p.namespace, p.cluster, path)
	if err != nil {
		return err.Error()
	}
	return text
}

// mysql is one of the kinds of MySQL, core one of Kubernetes' own.
func mysql(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cr.mysqloperator.grtl.github.com", Version: "v1", Resource: plural}
}

func core(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: plural}
}

// read returns a field of one of Kubernetes' own objects in the test's namespace.
func (p *place) read(plural, name, path string) string {
	p.t.Helper()
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	text, err := p.objects.Field(ctx, core(plural), p.namespace, name, path)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

const readyPath = `{.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason} {.status.conditions[?(@.type=="Ready")].message} gen={.metadata.generation}/{.status.observedGeneration}`

// waitReady waits until the Ready condition begins with what is wanted, for the present generation.
func (p *place) waitReady(want string, limit time.Duration) string {
	p.t.Helper()
	last := ""
	p.wait("Ready to be "+want, limit, func(ctx context.Context) (bool, string) {
		last = p.field(ctx, readyPath)
		_, generations, _ := strings.Cut(last, " gen=")
		now, observed, _ := strings.Cut(generations, "/")
		return strings.HasPrefix(last, want) && now == observed, last
	})
	return last
}

// hasEvent waits until there is an event with this reason and text. The operator writes events after the status that they explain.
func (p *place) hasEvent(reason, text string) {
	p.t.Helper()
	p.wait("the event "+reason, answerLimit, func(ctx context.Context) (bool, string) {
		found, err := p.kubectl.Run(ctx, "get", "events", "-n", p.namespace, "--field-selector=reason="+reason, "-o", "jsonpath={range .items[*]}event: {.message} {end}")
		return err == nil && strings.Contains(found, "event: ") && strings.Contains(found, text), found
	})
}

// start makes a ready cluster.
func (p *place) start(replicas int, lines ...string) {
	p.t.Helper()
	p.mustApply(secret(p.password))
	p.mustApply(p.manifest(append(lines, fmt.Sprintf("replicas: %d", replicas))...))
	p.settled(replicas)
}

// settled waits until all members serve and acknowledge.
func (p *place) settled(replicas int) {
	p.t.Helper()
	p.waitReady("True AllMembersReady", readyLimit)
	p.wait("commits to be replicated", changeLimit, func(ctx context.Context) (bool, string) {
		seen := p.field(ctx, `{.status.readySummary} {.status.requiredAcks} {.status.conditions[?(@.type=="Durable")].status}`)
		return seen == fmt.Sprintf("%d/%d %s True", replicas, replicas, acksText(replicas)), seen
	})
}

// acksText is how kubectl prints the acknowledgements of a whole cluster: a zero is left out.
func acksText(replicas int) string {
	if replicas < 2 {
		return ""
	}
	return fmt.Sprint(replicas / 2)
}
