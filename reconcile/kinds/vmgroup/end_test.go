package vmgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// failed returns the failure of an order for a machine.
func failed(verb vcenter.Verb, number int) vcenter.Failure {
	failure := resting(number)
	failure.Verb = verb
	return failure
}

// at returns a folder in another place with machines.
func at(path string, machines ...vcenter.Machine) vcenter.Inventory {
	seen := folder(machines...)
	seen.Path = path
	return seen
}

func TestDecideEnd(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		seen   vcenter.Inventory
		ago    time.Duration
		want   string
		before []func(*v1alpha1.VmGroup)
	}{
		"nothing was made":                      {vcenter.Inventory{}, 0, "release", nil},
		"one is being made":                     {vcenter.Inventory{Cloning: []string{"shop-web-0"}}, 0, "waits: shop-web-0 is being created, and will be deleted after that", nil},
		"all run":                               {folder(machine(0), machine(1, tools), machine(2, off)), 0, "Destroy 2; Shutdown 1; PowerOff 0", nil},
		"one is busy":                           {folder(machine(0, off, busy)), 0, "waits: the vCenter runs a task on shop-web-0", nil},
		"one is half made":                      {folder(machine(0, making)), time.Hour, "waits: shop-web-0 may be a machine that is being created for this VmGroup", nil},
		"one may be half made":                  {folder(machine(0, unmarked)), time.Minute, "waits: shop-web-0 may be a machine that is being created for this VmGroup", nil},
		"it is a user's machine":                {folder(machine(0, unmarked)), time.Hour, "release; left: folder /DC0/vm/shop-web stays in vCenter vc.example.com: it contains objects that this VmGroup did not create: shop-web-0", nil},
		"a host is lost":                        {folder(machine(0, lost)), 0, "waits: the host of shop-web-0 does not answer the vCenter; if the host is gone for good, this command releases the VmGroup and leaves its machines: kubectl -n shop annotate vmgroup web vm.codeconnect.vmworld.com/abandon=true", nil},
		"a datastore is lost":                   {folder(machine(0, off), machine(1, unread("inaccessible"))), time.Hour, "Destroy 0; problem MachineBroken", nil},
		"one was deleted on its host":           {folder(machine(0, orphaned)), time.Hour, "problem MachineBroken", nil},
		"one of unknown name is lost":           {folder(machine(0, unread("invalid"), named("x"))), time.Hour, "problem MachineBroken", nil},
		"the folder is empty":                   {folder(), 0, "DeleteFolder", nil},
		"another group's machine is in it":      {folder(machine(0, another)), 0, "release; left: folder /DC0/vm/shop-web stays in vCenter vc.example.com: it contains objects that this VmGroup did not create: shop-web-0", nil},
		"a copy is in it":                       {folder(machine(0, off), machine(0, copied)), 0, "Destroy 0", nil},
		"only a copy is in it":                  {folder(machine(0, copied, off)), 0, "release; left: folder /DC0/vm/shop-web stays in vCenter vc.example.com: it contains objects that this VmGroup did not create: copy", nil},
		"a renamed one is deleted too":          {folder(machine(1, named("db"), off)), 0, "Destroy 1", nil},
		"a user's objects are in it":            {vcenter.Inventory{Folder: "f", Path: "/p", Others: []string{"x"}}, 0, "release; left: folder /p stays in vCenter vc.example.com: it contains objects that this VmGroup did not create: x", nil},
		"one could not be deleted":              {vcenter.Inventory{Folder: "f", Path: "/p", Machines: []vcenter.Machine{machine(2, off)}, Failures: []vcenter.Failure{failed(vcenter.Destroy, 2)}}, 0, "problem TaskFailed", nil},
		"one could not be cloned, and is there": {vcenter.Inventory{Folder: "f", Path: "/p", Machines: []vcenter.Machine{machine(2, off)}, Failures: []vcenter.Failure{failed(vcenter.Clone, 2)}}, 0, "Destroy 2", nil},
		"the account leads to another place":    {vcenter.Inventory{Path: "/DC0/vm/shop-web"}, 0, "problem VCenterChanged", []func(*v1alpha1.VmGroup){was("/DC1/vm/shop-web", 0)}},
		"its folder was renamed":                {vcenter.Inventory{Path: "/DC0/vm/shop-web", Elsewhere: "/DC0/vm/x/shop-web-0"}, 0, "problem VCenterChanged", []func(*v1alpha1.VmGroup){was("/DC0/vm/shop-web", 3)}},
		"one was moved out of its folder":       {vcenter.Inventory{Folder: "f", Path: "/p", Elsewhere: "/x/shop-web-1"}, time.Hour, "problem MachineMoved", nil},
		"one was moved, a copy is in it":        {vcenter.Inventory{Folder: "f", Path: "/p", Elsewhere: "/x/shop-web-1", Machines: []vcenter.Machine{machine(0, copied)}}, time.Hour, "problem MachineMoved", nil},
		"the folder could not be deleted":       {vcenter.Inventory{Folder: "f", Path: "/p", Failures: []vcenter.Failure{{Verb: vcenter.DeleteFolder, Reason: vcenter.Failed, Message: "no", InBackoff: true}}}, time.Hour, "problem TaskFailed", nil},
		"the account could never see its folder": {vcenter.Inventory{Path: "/DC0/vm/shop-web"}, 0, "release; left: folder /DC0/vm/shop-web may be left in vCenter vc.example.com, where the account cannot see it: propagate", []func(*v1alpha1.VmGroup){func(g *v1alpha1.VmGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: string(vcenter.Forbidden), Message: "propagate"}}
		}}},
		"its folder is gone, as wanted":       {vcenter.Inventory{Path: "/DC0/vm/shop-web"}, 0, "release", []func(*v1alpha1.VmGroup){was("/DC0/vm/shop-web", 0)}},
		"its folder is gone, with machines":   {vcenter.Inventory{Path: "/DC0/vm/shop-web"}, 0, "release; left: the operator cannot see folder /DC0/vm/shop-web in vCenter vc.example.com, where 3 machines of this VmGroup ran: if it was renamed or moved, delete it there", []func(*v1alpha1.VmGroup){was("/DC0/vm/shop-web", 3)}},
		"its folder was moved, with them all": {at("/DC0/vm/new/shop-web", machine(0, off)), 0, "Destroy 0", []func(*v1alpha1.VmGroup){was("/DC0/vm/shop-web", 0)}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			group := web(func(g *v1alpha1.VmGroup) {
				deleted := metav1.NewTime(noon.Add(-12 * time.Hour)) // by a clock that must not matter
				g.DeletionTimestamp = &deleted
				for _, one := range test.before {
					one(g)
				}
			})
			if diff := cmp.Diff(test.want, said(decideEnd(group, observed{now: noon, host: "vc.example.com", inventory: test.seen, ending: test.ago}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
