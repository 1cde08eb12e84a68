//go:build !race && !without_vcenter

package vsphere

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// TestAFolderThatCannotBeMade: the pauses before a retry grow for a folder too. A folder that the account cannot see is reported.
func TestAFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		fault types.BaseMethodFault
		words string
	}{
		"no privilege": {&types.NoPermission{PrivilegeId: "Folder.Create"}, "Folder.Create"},
		"unseen":       {&types.DuplicateName{}, "folder /DC0/vm/shop-web exists, and Administrator@vsphere.local cannot see it: propagate"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			v, watch := vcsim.New(t), &clock{}
			service, group := New(watch.now), groupOf(v)
			order := vcenter.Order{Group: group, Verb: vcenter.CreateFolder}
			v.Fail(fails("CreateFolder", test.fault))
			wantReason(t, service.Do(t.Context(), order), vcenter.Forbidden, test.words)
			wantReason(t, service.Do(t.Context(), order), vcenter.Moved, "the group's folder is not tried again yet")
			found, err := service.Look(t.Context(), group)
			must(t, err)
			if len(found.Failures) != 1 || found.Failures[0].Machine != "" || found.Failures[0].Verb != vcenter.CreateFolder || !found.Failures[0].InBackoff {
				t.Errorf("failures %+v", found.Failures)
			}
			v.Fail(nil)
			watch.forward(retryFirst + time.Second)
			must(t, service.Do(t.Context(), order))
			if found, err = service.Look(t.Context(), group); err != nil || found.Folder == "" || len(found.Failures) > 0 {
				t.Errorf("found %+v, error %v", found, err)
			}
		})
	}
}

// TestAFolderThatCannotBeDeleted: whether the vCenter refuses the call or its task fails, it is reported, and not retried immediately.
func TestAFolderThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	order := vcenter.Order{Group: group, Verb: vcenter.DeleteFolder}
	v.Fail(fails("Destroy_Task", &types.NoPermission{PrivilegeId: "Folder.Delete"}))
	wantReason(t, service.Do(t.Context(), order), vcenter.Forbidden, "Folder.Delete")
	wantReason(t, service.Do(t.Context(), order), vcenter.Moved, "not tried again yet")
	v.Fail(nil)
	watch.forward(retryFirst + time.Second)
	v.KeepFolder(group.Folder)
	must(t, service.Do(t.Context(), order))
	found := until(t, service, group, "the task's end", func(found vcenter.Inventory) bool {
		return len(found.Failures) == 1 && found.Failures[0].Reason == vcenter.Failed
	})
	if one := found.Failures[0]; one.Machine != "" || one.Verb != vcenter.DeleteFolder || !one.InBackoff {
		t.Errorf("failure %+v", one)
	}
}

// fails makes one method answer with a fault.
func fails(method string, by types.BaseMethodFault) func(string) types.BaseMethodFault {
	return func(asked string) types.BaseMethodFault {
		if asked == method {
			return by
		}
		return nil
	}
}

// TestADatacenterThatIsRenamed: the service finds it by its new name within a minute.
func TestADatacenterThatIsRenamed(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	v.RenameDatacenter("north")
	watch.forward(siteLife + time.Second)
	found, err := service.Look(t.Context(), group)
	must(t, err)
	if found.Path != "/north/vm/shop-web" || found.Folder == "" {
		t.Errorf("found %+v", found)
	}
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	until(t, service, group, "the machine", rests(1))
}
