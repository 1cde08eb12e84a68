//go:build !race && !without_vcenter

package vsphere

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// TestTasksAreAskedForTogether: the number of a look's requests does not depend on the number of tasks. A task that the vCenter has
// forgotten is over.
func TestTasksAreAskedForTogether(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, group := New(time.Now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	one, _, err := service.session(group.Account)
	must(t, err)
	look := func() (vcenter.Inventory, int) {
		t.Helper()
		before := v.Calls("")
		found, err := service.Look(t.Context(), group)
		must(t, err)
		return found, v.Calls("") - before
	}
	_, atRest := look()
	for _, name := range []string{"shop-web-0", "shop-web-1", "shop-web-2", "shop-web-3"} {
		must(t, service.Do(t.Context(), clone(group, name)))
	}
	if found, asked := look(); len(found.Cloning) != 4 || asked != atRest+1 {
		t.Errorf("%d requests with %d tasks in progress, %d at rest", asked, len(found.Cloning), atRest)
	}
	one.mu.Lock()
	one.tasks[taskTarget{group.UID, "forgotten"}] = runningTask{attempt{verb: vcenter.Clone}, types.ManagedObjectReference{Type: "Task", Value: "task-9999"}}
	one.mu.Unlock()
	if found, _ := look(); len(found.Cloning) > 4 {
		t.Errorf("in progress are %v", found.Cloning)
	}
	until(t, service, group, "the machines", rests(4))
}
