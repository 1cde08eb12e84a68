package vmgroup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// conditions are a status's conditions in few words.
func conditions(status v1alpha1.VmGroupStatus) []string {
	words := []string{string(status.Phase) + ": " + status.LastMessage}
	for _, one := range status.Conditions {
		words = append(words, one.Type+" "+string(one.Status)+" "+one.Reason)
	}
	return words
}

func told(events []reconcile.Event) []string {
	words := []string{}
	for _, one := range events {
		words = append(words, one.Type+" "+one.Reason)
	}
	return words
}

// TestTheStoryOfAGroup follows a status from one pass to the next.
func TestTheStoryOfAGroup(t *testing.T) {
	t.Parallel()
	group, at := web(), vcenter.Group{Account: vcenter.Account{Host: "vc.example.com"}}
	after := func(seen vcenter.Inventory, passed time.Duration) []string {
		t.Helper()
		here := look{now: noon.Add(passed), inventory: seen}
		next := decide(group, here)
		if group.DeletionTimestamp != nil {
			next = decideEnd(group, here)
		}
		before := group.Status
		group.Status = reported(group, at, here, next)
		return append(conditions(group.Status), told(tell(before, group.Status))...)
	}
	want := func(got []string, lines ...string) {
		t.Helper()
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	answers := "VCenterReachable True Answers"
	want(after(folder(), 0), "PENDING: clones shop-web-0", "Ready False Progressing", "Reconciling True Progressing", answers)
	want(after(folder(machine(0)), time.Second), "PENDING: clones shop-web-1, shop-web-2", "Ready False Progressing", "Reconciling True Progressing", answers)
	want(after(folder(machine(0), machine(1), machine(2)), time.Minute), "RUNNING: 3 machines run, each with 2 CPU and 1 GiB", "Ready True Running", answers, "Normal Running")

	rested := group.Status
	want(after(folder(machine(0), machine(1), machine(2)), time.Hour), "RUNNING: 3 machines run, each with 2 CPU and 1 GiB", "Ready True Running", answers)
	if diff := cmp.Diff(rested, group.Status); diff != "" {
		t.Errorf("at rest the status changes:\n%s", diff)
	}

	before := group.Status
	group.Status = troubled(group, problem{string(vcenter.Unreachable), "it cannot be reached"}, noon)
	want(append(conditions(group.Status), told(tell(before, group.Status))...), "ERROR: it cannot be reached", "Ready False VCenterUnreachable", "Reconciling True VCenterUnreachable", "VCenterReachable False VCenterUnreachable", "Warning VCenterUnreachable")
	if *group.Status.CurrentReplicas != 3 {
		t.Errorf("currentReplicas %d: what is not known to be otherwise has to stay", *group.Status.CurrentReplicas)
	}
	again := troubled(group, problem{string(vcenter.Unreachable), "it cannot be reached"}, noon.Add(time.Hour))
	if diff := cmp.Diff(group.Status, again); diff != "" {
		t.Errorf("while the vCenter is away the status changes:\n%s", diff)
	}
	group.Status = troubled(group, problem{string(vcenter.Refused), "no"}, noon)
	want(conditions(group.Status), "ERROR: no", "Ready False LoginRefused", "Stalled True LoginRefused", "VCenterReachable False LoginRefused")

	deleted := metav1.NewTime(noon)
	group.DeletionTimestamp = &deleted
	want(after(folder(machine(0, off), machine(1, off)), 0), "DELETING: deletes shop-web-1, shop-web-0", "Ready False Deleting", "Reconciling True Deleting", answers)
	status := troubled(group, problem{string(vcenter.Unreachable), "it cannot be reached"}, noon)
	if status.Phase != v1alpha1.PhaseDeleting || !strings.Contains(status.LastMessage, "kubectl -n shop annotate vmgroup web vm.codeconnect.vmworld.com/abandon=true") {
		t.Errorf("%s: %s", status.Phase, status.LastMessage)
	}
	if left := abandoned(group); !strings.Contains(left, "/DC0/vm/shop-web in vc.example.com") {
		t.Errorf("left: %s", left)
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	data := map[string]string{"VC_HOST": " 10.0.0.1\n", "VC_USER": "u", "VC_PASS": " p w\n", "VC_INSECURE": "True", "VC_DATACENTER": "DC0", "VC_FOLDER": "f", "VC_POOL": "p", "VC_DATASTORE": "d", "VC_CA": "pem"}
	found, missing := accessFrom(func(key string) string { return data[key] })
	want := vcenter.Account{Host: "10.0.0.1", User: "u", Password: " p w", Insecure: true, Authorities: "pem"}
	if found.account != want || len(missing) > 0 {
		t.Errorf("account of %s, missing %v", found.account, missing)
	}
	group := groupOf(web(func(g *v1alpha1.VmGroup) { g.Spec.Folder = "mine" }), found)
	if diff := cmp.Diff(vcenter.Place{Datacenter: "DC0", Folder: "mine", ResourcePool: "p", Datastore: "d"}, group.Place); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
	_, missing = accessFrom(func(key string) string { return map[string]string{"VC_USER": "u"}[key] })
	if !slices.Equal(missing, []string{"VC_HOST", "VC_PASS"}) {
		t.Errorf("missing %v", missing)
	}
}
