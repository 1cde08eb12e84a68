package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// The roles of members' Pods.
const (
	rolePrimary = "primary"
	roleReplica = "replica"
	roleFormer  = "former-primary"
)

// leastRefused is for how long a Pod must have the role of a former primary at least. Its mysqld refuses clients for twelve seconds (ADR
// 36). On a busy machine, the operator may set the role late.
const leastRefused = 6 * time.Second

// mostLed is for how long readers may be led to a Pod with the role of a former primary: Kubernetes follows a new role a moment later.
const mostLed = 5 * time.Second

// routes records who is the primary, the roles of the members' Pods, and the Pods to which the Service for reading leads. It misses no
// change, so what it says does not depend on when a test looks.
type routes struct {
	mu      sync.Mutex
	changes []routeChange
}

// routeChange is a change of the MySQLCluster, a Pod or an EndpointSlice. Only the fields of its kind are set.
type routeChange struct {
	// revision orders the changes of all kinds: they are in one etcd.
	revision int64
	at       time.Time
	// cluster has this primary.
	cluster, primary string
	// pod has this role.
	pod, role string
	// slice leads to these Pods, which are ready.
	slice string
	to    []string
}

// recordRoutes records until the test ends.
func (p *place) recordRoutes() *routes {
	p.t.Helper()
	r := &routes{}
	endpoints := schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	p.watch(r, core("pods"), "app.kubernetes.io/name=mysql", podChange)
	p.watch(r, mysql("mysqlclusters"), "", clusterChange)
	p.watch(r, endpoints, "kubernetes.io/service-name="+p.cluster+"-read", sliceChange)
	return r
}

func (p *place) watch(r *routes, of schema.GroupVersionResource, selector string, read func(*unstructured.Unstructured) routeChange) {
	p.t.Helper()
	hour := int64(time.Hour / time.Second) // longer than a test takes
	seen, err := p.objects.Watch(p.t.Context(), of, p.namespace, metav1.ListOptions{LabelSelector: selector, TimeoutSeconds: &hour})
	if err != nil {
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range seen.ResultChan() {
			r.add(event, read)
		}
		if p.t.Context().Err() == nil {
			p.t.Errorf("the watch of %s ended before the test did", of.Resource)
		}
	}()
	p.t.Cleanup(func() { <-done }) // the test's context has ended by then
}

// add records a change. What is deleted has no role, and leads nowhere.
func (r *routes) add(event watch.Event, read func(*unstructured.Unstructured) routeChange) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return // an error, after which the watch ends
	}
	change := read(object)
	change.at = time.Now()
	change.revision, _ = strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if event.Type == watch.Deleted {
		change.role, change.to = "", nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, change)
}

func clusterChange(cluster *unstructured.Unstructured) routeChange {
	primary, _, _ := unstructured.NestedString(cluster.Object, "status", "primary")
	return routeChange{cluster: cluster.GetName(), primary: primary}
}

func podChange(pod *unstructured.Unstructured) routeChange {
	return routeChange{pod: pod.GetName(), role: pod.GetLabels()["cr.mysqloperator.grtl.github.com/role"]}
}

func sliceChange(slice *unstructured.Unstructured) routeChange {
	change := routeChange{slice: slice.GetName()}
	endpoints, _, _ := unstructured.NestedSlice(slice.Object, "endpoints")
	for _, each := range endpoints {
		endpoint, _ := each.(map[string]any)
		pod, _, _ := unstructured.NestedString(endpoint, "targetRef", "name")
		isReady, isKnown, _ := unstructured.NestedBool(endpoint, "conditions", "ready")
		if isReady || !isKnown {
			change.to = append(change.to, pod)
		}
	}
	return change
}

// String lists the changes, one a line.
func (r *routes) String() string {
	text := "what led readers:"
	for _, change := range r.sorted() {
		text += fmt.Sprintf("\n%s %d %s%s%s %q %q", change.at.Format(time.StampMilli), change.revision, change.cluster, change.pod, change.slice, change.primary+change.role, change.to)
	}
	return text
}

// sorted returns the changes so far, in their order.
func (r *routes) sorted() []routeChange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(r.changes), func(one, other routeChange) int { return cmp.Compare(one.revision, other.revision) })
}

// routing is what the changes so far come to.
type routing struct {
	primary string
	roles   map[string]string
	to      map[string][]string
	since   map[string]time.Time
	// wrong is since when readers have been led to a former primary.
	wrong map[string]time.Time
	// formers counts how often a Pod became that of a former primary. problems are what must not be.
	formers  int
	problems []string
}

// now returns what all changes come to.
func (r *routes) now() routing {
	now := routing{roles: map[string]string{}, to: map[string][]string{}, since: map[string]time.Time{}, wrong: map[string]time.Time{}}
	for _, change := range r.sorted() {
		now.judge(change.at)
		switch {
		case change.cluster != "":
			now.primary = change.primary
		case change.pod != "":
			now.changeRole(change)
		default:
			now.to[change.slice] = change.to
		}
		now.noteWrong(change.at)
	}
	return now
}

func (now *routing) changeRole(change routeChange) {
	was := now.roles[change.pod]
	if was == change.role {
		return
	}
	now.roles[change.pod] = change.role
	switch lasted := change.at.Sub(now.since[change.pod]); {
	case change.role == roleFormer:
		now.formers++
		now.since[change.pod] = change.at
	case was == rolePrimary && change.role == roleReplica:
		now.problems = append(now.problems, fmt.Sprintf("readers were led to %s as soon as it was not the primary any more", change.pod))
	case was == roleFormer && change.role == roleReplica && lasted < leastRefused:
		now.problems = append(now.problems, fmt.Sprintf("readers were led to %s after %s", change.pod, lasted))
	}
}

// judge checks that no reader has been led to a former primary for long until this time.
func (now *routing) judge(at time.Time) {
	for pod, since := range now.wrong {
		problem := "readers were led to the former primary " + pod
		if at.Sub(since) > mostLed && !slices.Contains(now.problems, problem) {
			now.problems = append(now.problems, problem)
		}
	}
}

// noteWrong notes since when readers have been led to former primaries. If one leads again, the operator changes its role a moment later.
func (now *routing) noteWrong(at time.Time) {
	for pod, role := range now.roles {
		if _, isKnown := now.wrong[pod]; role != roleFormer || pod == now.primary || !now.leadsTo(pod) {
			delete(now.wrong, pod)
		} else if !isKnown {
			now.wrong[pod] = at
		}
	}
}

func (now *routing) leadsTo(pod string) bool {
	for _, to := range now.to {
		if slices.Contains(to, pod) {
			return true
		}
	}
	return false
}

// readers are the replicas to which readers are led.
func (now *routing) readers() (count int) {
	for pod, role := range now.roles {
		if role == roleReplica && now.leadsTo(pod) {
			count++
		}
	}
	return count
}

func (now *routing) String() string {
	return fmt.Sprintf("the roles are %v, readers are led to %v", now.roles, now.to)
}

// leadsReaders waits until readers are led to all replicas, and checks that they were led to no former primary in all takeovers.
func (p *place) leadsReaders(r *routes, replicas, takeovers int) {
	p.t.Helper()
	p.wait("readers to be led to all replicas", answerLimit, func(context.Context) (bool, string) {
		now := r.now()
		return now.readers() == replicas, now.String()
	})
	now := r.now()
	if now.formers < takeovers {
		p.t.Errorf("Pods had the role of a former primary %d times, in %d takeovers", now.formers, takeovers)
	}
	for _, problem := range now.problems {
		p.t.Error(problem)
	}
	if p.t.Failed() {
		p.t.Log(r)
	}
}
