package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestEachFaultAtEachRequest upgrades from release 1 to release 3, which takes everything at once: a version carried over, objects
// rewritten, the version dropped. Each request of that upgrade fails in each of several ways, of which a sample runs. The test starts the
// operator again until the upgrade is complete. The end is always the newest definition, with every object as it was.
func TestEachFaultAtEachRequest(t *testing.T) {
	t.Parallel()
	server := apiserver.Own(t)
	requests := countRequests(t, server)
	t.Logf("an upgrade takes %d requests", requests)
	ways := slices.Sorted(maps.Keys(faults(nil)))
	cases, sampled := []func(){}, sample.New(t)
	for at := int64(1); at <= requests; at++ {
		for index, way := range ways {
			if !sampled.Takes(int(at) + index) {
				continue
			}
			cases = append(cases, func() {
				t.Run(fmt.Sprintf("%s at request %d", way, at), func(t *testing.T) {
					p := product{t: t, server: server, plural: fmt.Sprintf("f%dx%ds", at, index)}
					defer p.remove()
					before := p.firstRelease()
					p.upgradeDespite(way, at)
					p.wantNewest()
					p.wantObjects(before)
				})
			})
		}
	}
	atOnce(cases)
}

// atOnce runs cases that mostly wait, many at a time, which t.Parallel would not on a machine with few cores.
func atOnce(cases []func()) {
	queue := make(chan func())
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for run := range queue {
				run()
			}
		})
	}
	for _, run := range cases {
		queue <- run
	}
	close(queue)
	workers.Wait()
}

func countRequests(t *testing.T, server *apiserver.Server) int64 {
	t.Helper()
	p := product{t: t, server: server, plural: "counts"}
	defer p.remove()
	p.firstRelease()
	none := &fault{}
	o := p.operator(3, none)
	if _, err := o.boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := o.lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.wantNewest()
	return none.seen.Load()
}

// firstRelease boots release 1 and makes three objects. It returns what is in them.
func (p product) firstRelease() map[string]map[string]any {
	p.t.Helper()
	if _, err := p.operator(1, nil).boot(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	made := map[string]map[string]any{}
	for index := range int64(3) {
		name, spec := fmt.Sprintf("o%d", index), map[string]any{"size": index, "colour": "red"}
		if err := p.create(p.t.Context(), "v1alpha1", "default", name, spec); err != nil {
			p.t.Fatal(err)
		}
		made[name] = spec
	}
	return made
}

func (p product) upgradeDespite(way string, at int64) {
	p.t.Helper()
	ctx, kill := context.WithCancel(p.t.Context())
	defer kill()
	disturbed := p.operator(3, &fault{at: at, what: faults(kill)[way]})
	_, err := disturbed.boot(ctx)
	if err == nil {
		err = disturbed.lead(ctx)
	}
	if err == nil {
		return
	}
	if !isDisturbance(err) {
		p.t.Fatalf("refused because of a fault: %v", err)
	}
	again := p.operator(3, nil)
	if _, err := again.boot(p.t.Context()); err != nil {
		p.t.Fatalf("the next start: %v", err)
	}
	if err := again.lead(p.t.Context()); err != nil {
		p.t.Fatalf("the next start's migration: %v", err)
	}
}

// wantObjects holds what is there to what was written.
func (p product) wantObjects(want map[string]map[string]any) {
	p.t.Helper()
	list, err := p.client("v1").List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	got := map[string]map[string]any{}
	for _, item := range list.Items {
		spec, _, _ := unstructured.NestedMap(item.Object, "spec")
		got[item.GetName()] = spec
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("objects (-want +got):\n%s", diff)
	}
	for name := range got {
		p.wantAppliable(name)
	}
}

// wantAppliable makes sure that a user's apply works: it does not where managedFields name a version that is gone.
func (p product) wantAppliable(name string) {
	p.t.Helper()
	object := p.object("v1", name, map[string]any{"colour": "red"})
	options := metav1.ApplyOptions{FieldManager: "user", Force: true, DryRun: []string{metav1.DryRunAll}}
	if _, err := p.client("v1").Namespace("default").Apply(p.t.Context(), name, object, options); err != nil {
		p.t.Errorf("apply to %s: %v", name, err)
	}
}
