//go:build !race && !without_vcenter

// The race detector finds what the simulator of a vCenter does to itself: two machines that are deleted at once share a datastore without a
// lock. These tests run without it (make test-integration).

package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
	"github.com/mysql-operator/mysql-operator/test/sample"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

const (
	asOrdered = "2 CPU, 1 GiB, on"
	larger    = "4 CPU, 2 GiB, on"
)

// TestVmGroupLife follows a group from its making to its end: scaling, another size, what others do to its machines.
func TestVmGroupLife(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.credentials(vcsim.Password)
	operator := f.operateVMs(0)
	f.group("web", 3)
	group := f.phase("web", v1alpha1.PhaseRunning, "Running")
	f.machines(like("web", 3, asOrdered))
	if *group.Status.CurrentReplicas != 3 || group.Status.DesiredReplicas != 3 || group.Status.LastMessage != "3 machines run, each with 2 CPU and 1 GiB" || group.Status.Folder != "/DC0/vm/"+f.namespace+"-web" {
		t.Errorf("status %+v", group.Status)
	}

	// At rest nothing is written.
	before, asked := operator.writes(), f.vcenter.Calls("")
	for f.vcenter.Calls("") < asked+20 {
		pass(t, 50*time.Millisecond)
	}
	if now := operator.writes(); now != before {
		t.Errorf("%d writes at rest", now-before)
	}

	scale := func(replicas int) {
		_, err := f.Dynamic.Resource(vmGroups().GVR()).Namespace(f.namespace).Patch(t.Context(), "web", "application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}, "scale")
		if err != nil {
			t.Fatal(err)
		}
	}
	scale(5)
	f.machines(like("web", 5, asOrdered))
	scale(2)
	f.machines(like("web", 2, asOrdered))
	f.patch(vmGroups().GVR(), "web", `{"spec":{"cpu":4,"memory":2}}`)
	f.machines(like("web", 2, larger))

	name := func(number int) string { return fmt.Sprintf("%[1]s-web/%[1]s-web-%[2]d", f.namespace, number) }
	f.vcenter.PowerOff(name(0))
	f.machines(like("web", 2, larger))
	f.vcenter.Destroy(name(0))
	f.machines(like("web", 2, larger))
	f.vcenter.ForgetSessions()
	f.vcenter.Destroy(name(1))
	f.machines(like("web", 2, larger))
	f.phase("web", v1alpha1.PhaseRunning, "Running")

	f.remove(vmGroups().GVR(), "web")
	f.gone("web")
	f.emptied()
}

// TestVmGroupSurvivesEveryCrash lets an operator die after each of its writes, and the next one after each of its own: there is never a
// machine too many, none is left over, and the group is made and deleted all the same.
func TestVmGroupSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	sampled := sample.New(t)
	for after := 1; after <= 16; after++ {
		if !sampled.Takes(after) {
			continue
		}
		t.Run(fmt.Sprintf("after %d", after), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.credentials(vcsim.Password)
			f.group("web", 3)
			first := f.operateVMs(after)
			f.dies(first, func() bool {
				group, _ := f.read(t.Context(), "web")
				return group.Status.Phase == v1alpha1.PhaseRunning
			})
			second := f.operateVMs(after)
			f.dies(second, func() bool {
				group, _ := f.read(t.Context(), "web")
				return group.Status.Phase == v1alpha1.PhaseRunning
			})
			f.operateVMs(0)
			f.phase("web", v1alpha1.PhaseRunning, "Running")
			f.machines(like("web", 3, asOrdered))
			if made := f.vcenter.Calls("CreateVM_Task"); made != 0 {
				t.Errorf("%d machines were made otherwise than by cloning", made)
			}
		})
		t.Run(fmt.Sprintf("deleting, after %d", after), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.credentials(vcsim.Password)
			f.group("web", 2)
			making := f.operateVMs(after + 2)
			f.dies(making, func() bool {
				group, _ := f.read(t.Context(), "web")
				return group.Status.Phase == v1alpha1.PhaseRunning
			})
			// However far it has come.
			f.remove(vmGroups().GVR(), "web")
			deleting := f.operateVMs(after)
			f.dies(deleting, func() bool {
				_, is := f.read(t.Context(), "web")
				return !is
			})
			f.operateVMs(0)
			f.gone("web")
			f.emptied()
		})
	}
}

// dies waits until an operator has died, or has done all there is to do, and ends it.
func (f *fleet) dies(operator *mortal, done func() bool) {
	f.t.Helper()
	for !operator.isDead() && !done() {
		pass(f.t, 20*time.Millisecond)
	}
	operator.end(f.t)
}

// TestVmGroupWithoutVCenter: a vCenter that is away is a condition, is left in peace, and is used as soon as it is back.
func TestVmGroupWithoutVCenter(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.credentials(vcsim.Password)
	f.vcenter.Down()
	operator := f.operateVMs(0)
	f.group("web", 1)
	group := f.phase("web", v1alpha1.PhaseError, "VCenterUnreachable")
	if !strings.Contains(group.Status.LastMessage, "cannot be reached") || group.Status.CurrentReplicas != nil {
		t.Errorf("status %+v", group.Status)
	}
	before := operator.writes()
	pass(t, time.Second)
	if now := operator.writes(); now != before {
		t.Errorf("%d writes while the vCenter is away", now-before)
	}
	f.vcenter.Up()
	f.phase("web", v1alpha1.PhaseRunning, "Running")

	f.vcenter.Down()
	f.phase("web", v1alpha1.PhaseError, "VCenterUnreachable")
	f.remove(vmGroups().GVR(), "web")
	group = f.phase("web", v1alpha1.PhaseDeleting, "VCenterUnreachable")
	if !strings.Contains(group.Status.LastMessage, "annotate vmgroup web vm.codeconnect.vmworld.com/abandon=true") {
		t.Errorf("message %q does not say how to let it go", group.Status.LastMessage)
	}
	f.patch(vmGroups().GVR(), "web", `{"metadata":{"annotations":{"vm.codeconnect.vmworld.com/abandon":"true"}}}`)
	f.gone("web")
	if note := f.told("web", "MachinesLeft"); !strings.Contains(note, "/DC0/vm/"+f.namespace+"-web") {
		t.Errorf("the event says %q", note)
	}
	f.machines(like("web", 1, asOrdered))
}

// TestVmGroupWithoutCredentials: what is missing or wrong in the Secret is told, and a correction is enough.
func TestVmGroupWithoutCredentials(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.operateVMs(0)
	f.group("web", 1)
	if group := f.phase("web", v1alpha1.PhaseError, "CredentialsMissing"); !strings.Contains(group.Status.LastMessage, "create secret generic vc-creds") || len(group.Finalizers) > 0 {
		t.Errorf("status %+v, finalizers %v", group.Status, group.Finalizers)
	}
	f.credentials("wrong")
	f.phase("web", v1alpha1.PhaseError, "LoginRefused")
	pass(t, time.Second)
	if tries := f.vcenter.Calls("Login"); tries > 1 {
		t.Errorf("the wrong password was tried %d times", tries)
	}
	f.patch(coreResource("secrets"), "vc-creds", fmt.Sprintf(`{"stringData":{"VC_PASS":%q}}`, vcsim.Password))
	f.phase("web", v1alpha1.PhaseRunning, "Running")
}

// TestVmGroupsShareASession: many groups are one client to the vCenter.
func TestVmGroupsShareASession(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.credentials(vcsim.Password)
	f.operateVMs(0)
	want := map[string]string{}
	for i := range 6 {
		name := fmt.Sprintf("g%d", i)
		f.group(name, 1)
		want[name+"-0"] = asOrdered
	}
	f.machines(want)
	for i := range 6 {
		f.phase(fmt.Sprintf("g%d", i), v1alpha1.PhaseRunning, "Running")
	}
	if logins := f.vcenter.Calls("Login"); logins != 1 {
		t.Errorf("%d logins", logins)
	}
}

// TestVmGroupLeavesWhatIsNotItsOwn: others' machines in its folder are neither changed nor deleted, and neither is the folder then.
func TestVmGroupLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.credentials(vcsim.Password)
	folder := f.namespace + "-web"
	f.vcenter.Folder(folder)
	f.vcenter.Clone(vcsim.Template, folder, folder+"-1")
	f.operateVMs(0)
	f.group("web", 3)
	f.phase("web", v1alpha1.PhaseError, "MachineOccupied")
	f.machines(map[string]string{"web-0": asOrdered, "web-1": "1 CPU, 0 GiB, off", "web-2": asOrdered})
	f.vcenter.Rename(folder+"/"+folder+"-1", "theirs")
	f.phase("web", v1alpha1.PhaseRunning, "Running")
	f.remove(vmGroups().GVR(), "web")
	f.gone("web")
	if note := f.told("web", "MachinesLeft"); !strings.Contains(note, "theirs") {
		t.Errorf("the event says %q", note)
	}
	f.machines(map[string]string{"theirs": "1 CPU, 0 GiB, off"})
	if folders, err := f.vcenter.Folders(t.Context()); err != nil || !slices.Contains(folders, folder) {
		t.Errorf("folders %v, error %v", folders, err)
	}
}

// TestVmGroupDeletesNoMachineByAnOldSpec: the operator hears late that a group is larger. Another operator has made the machines.
func TestVmGroupDeletesNoMachineByAnOldSpec(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.credentials(vcsim.Password)
	late, asked := newLaggard("vmgroups"), &atomic.Int32{}
	f.operateVMs(0, late.slow, func(config *reconcile.Config) {
		config.Rest.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/vmgroups/web") {
					asked.Add(1)
				}
				return next.RoundTrip(request)
			})
		})
	})
	f.group("web", 1)
	f.phase("web", v1alpha1.PhaseRunning, "Running")
	late.lag()
	before := asked.Load()
	f.operateVMs(0)
	f.patch(vmGroups().GVR(), "web", `{"spec":{"replicas":3}}`)
	f.machines(like("web", 3, asOrdered))
	apiserver.Eventually(t, func(context.Context) string {
		if asked.Load() == before {
			return "the operator that is behind has not asked whether its spec is still wanted"
		}
		return ""
	})
	late.catchUp()
	group := f.phase("web", v1alpha1.PhaseRunning, "Running")
	f.machines(like("web", 3, asOrdered))
	if deleted := f.vcenter.Calls("Destroy_Task"); deleted != 0 || *group.Status.CurrentReplicas != 3 {
		t.Errorf("%d machines were deleted, the status says %+v", deleted, group.Status)
	}
}

// pass lets time pass, in which something is to happen or not to.
func pass(t *testing.T, long time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal("the test has ended")
	case <-time.After(long):
	}
}
