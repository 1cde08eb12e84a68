package vmgroup

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
	"github.com/mysql-operator/mysql-operator/test/reasons"
)

// conditions returns a status's conditions as short texts.
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
	group := web()
	after := func(seen vcenter.Inventory, passed time.Duration) []string {
		t.Helper()
		here := observed{now: noon.Add(passed), host: "vc.example.com", inventory: seen}
		next := decide(group, here)
		if group.DeletionTimestamp != nil {
			next = decideEnd(group, here)
		}
		before := group.Status
		group.Status = statusAfterPass(group, here, next)
		return append(conditions(group.Status), told(eventsFor(before, group.Status))...)
	}
	want := func(got []string, lines ...string) {
		t.Helper()
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	answers := "VCenterReachable True Answers"
	want(after(vcenter.Inventory{Path: "/DC0/vm/shop-web", VCenter: "vc1"}, 0), "PENDING: creating the group's folder", "Ready False Progressing", "Reconciling True Progressing", answers)
	if group.Status.Folder != "" || group.Status.VCenterID != "" {
		t.Errorf("the status has the folder %s before it exists", group.Status.Folder)
	}
	if first := decide(group, observed{now: noon, inventory: folder()}); len(first.steps) == 0 || len(stepsToSend(group, observed{inventory: folder()}, first)) > 0 {
		t.Error("a machine is created before the status has its folder")
	}
	want(after(folder(), 0), "PENDING: cloning shop-web-0", "Ready False Progressing", "Reconciling True Progressing", answers)
	if here := (observed{now: noon, inventory: folder()}); len(stepsToSend(group, here, decide(group, here))) != 1 {
		t.Error("no machine is made")
	}
	want(after(folder(machine(0)), time.Second), "PENDING: cloning shop-web-1, shop-web-2", "Ready False Progressing", "Reconciling True Progressing", answers)
	want(after(folder(machine(0), machine(1), machine(2)), time.Minute), "RUNNING: 3 machines run, each with 2 CPU and 1 GiB", "Ready True Running", answers, "Normal Running")

	rested := group.Status
	want(after(folder(machine(0), machine(1), machine(2)), time.Hour), "RUNNING: 3 machines run, each with 2 CPU and 1 GiB", "Ready True Running", answers)
	if diff := cmp.Diff(rested, group.Status); diff != "" {
		t.Errorf("at rest the status changes:\n%s", diff)
	}

	before := group.Status
	group.Status = statusWithProblem(group, report.Problem{Reason: string(vcenter.Unreachable), Message: "it cannot be reached"}, noon)
	want(append(conditions(group.Status), told(eventsFor(before, group.Status))...), "ERROR: it cannot be reached", "Ready False VCenterUnreachable", "Reconciling True VCenterUnreachable", "VCenterReachable False VCenterUnreachable", "Warning VCenterUnreachable")
	if *group.Status.CurrentReplicas != 3 {
		t.Errorf("currentReplicas %d: the last known number must stay", *group.Status.CurrentReplicas)
	}
	again := statusWithProblem(group, report.Problem{Reason: string(vcenter.Unreachable), Message: "it cannot be reached"}, noon.Add(time.Hour))
	if diff := cmp.Diff(group.Status, again); diff != "" {
		t.Errorf("while the vCenter is away the status changes:\n%s", diff)
	}
	group.Status = statusWithProblem(group, report.Problem{Reason: string(vcenter.LoginRefused), Message: "no"}, noon)
	want(conditions(group.Status), "ERROR: no", "Ready False LoginRefused", "Stalled True LoginRefused", "VCenterReachable False LoginRefused")

	deleted := metav1.NewTime(noon)
	group.DeletionTimestamp = &deleted
	want(after(folder(machine(0, off), machine(1, off)), 0), "DELETING: deleting shop-web-1, shop-web-0", "Ready False Deleting", "Reconciling True Deleting", answers)
	status := statusWithProblem(group, report.Problem{Reason: string(vcenter.Unreachable), Message: "it cannot be reached"}, noon)
	if status.Phase != v1alpha1.PhaseDeleting || !strings.Contains(status.LastMessage, "kubectl -n shop annotate vmgroup web vm.codeconnect.vmworld.com/abandon=true") {
		t.Errorf("%s: %s", status.Phase, status.LastMessage)
	}
	if left := abandoned(group); !strings.Contains(left, "/DC0/vm/shop-web in vc.example.com") {
		t.Errorf("left: %s", left)
	}
}

// TestNothingIsKnownOfAFolderUnseen: when a group is released without its machines, the report has the number that ran when they were last
// seen.
func TestNothingIsKnownOfAFolderUnseen(t *testing.T) {
	t.Parallel()
	group := web(was("/DC0/vm/shop-web", 3))
	unseen := observed{now: noon, inventory: vcenter.Inventory{Path: "/DC0/vm/shop-web"}}
	status := statusAfterPass(group, unseen, decide(group, unseen))
	if status.CurrentReplicas == nil || *status.CurrentReplicas != 3 {
		t.Errorf("the status reports %v running machines in a folder that the operator cannot see", status.CurrentReplicas)
	}
}

// TestReasonsAreDocumented: the document explains every reason that users find in a status.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	words := reasons.Constants(t, ".", "reason")
	for name, word := range reasons.Constants(t, "vcenter", "") {
		// The reasons and verbs of a vCenter: no status has Power, and no user sees Moved.
		if strings.ToLower(word) != word && name != "Moved" && name != "Program" {
			words[name] = word
		}
	}
	reasons.CheckDocumented(t, "../../../docs/vmgroup.md", words)
}
