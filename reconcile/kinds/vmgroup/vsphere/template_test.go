//go:build !race && !without_vcenter

package vsphere

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// TestNothingGoesForWhatCannotBeMade: a machine to replace stays as it is if there is no template or no place for the next one.
func TestNothingGoesForWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, group := New(time.Now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	order := vcenter.Order{Group: group, Machine: "shop-web-0", ID: until(t, service, group, "the machine", rests(1)).Machines[0].ID, Replaces: true}
	for _, verb := range []vcenter.Verb{vcenter.Shutdown, vcenter.Stop, vcenter.Destroy} {
		order.Verb, order.Group = verb, group
		order.Group.Template = "tpyo"
		wantReason(t, service.Do(t.Context(), order), vcenter.NoTemplate, `"tpyo"`)
		order.Group.Template, order.Group.Place.Datastore = vcsim.Template, "none"
		wantReason(t, service.Do(t.Context(), order), vcenter.NoPlace, "spec.datastore")
	}
	if v.Calls("Destroy_Task")+v.Calls("PowerOffVM_Task")+v.Calls("ShutdownGuest") != 0 {
		t.Error("the vCenter was asked to do it")
	}
	order.Group = group
	wantReason(t, service.Do(t.Context(), order), vcenter.Moved, "this very template")
	order.Group.Template = "DC0_C0_RP0_VM1"
	must(t, service.Do(t.Context(), order))
	until(t, service, group, "its end", rests(0))
}

// TestATemplateHasManyNames: a template is recognized by its identity, not by its spelling. That also holds for machines whose mark has
// only the spelling.
func TestATemplateHasManyNames(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, group := New(time.Now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	until(t, service, group, "the machine", rests(1))
	for name, template := range map[string]string{"shop-web-1": vcsim.Template, "shop-web-2": "gone"} {
		v.Clone(vcsim.Template, group.Folder, name,
			&types.OptionValue{Key: markOwner, Value: group.UID}, &types.OptionValue{Key: markSlot, Value: name}, &types.OptionValue{Key: markTemplate, Value: template})
	}
	path := "/DC0/vm/" + vcsim.Template
	for spelled, want := range map[string][]string{
		vcsim.Template:   {vcsim.Template, vcsim.Template, "gone"},
		path:             {path, path, "gone"},
		"tpyo":           {vcsim.Template, vcsim.Template, "gone"},
		"DC0_C0_RP0_VM1": {vcsim.Template, vcsim.Template, "gone"},
	} {
		group.Template = spelled
		found, err := service.Look(t.Context(), group)
		must(t, err)
		for i, one := range found.Machines {
			if one.Template != want[i] {
				t.Errorf("with %s, the template of %s is reported as %s, want %s", spelled, one.Name, one.Template, want[i])
			}
		}
	}
	// A look does not look up the template each time.
	group.Template = path
	before := v.Calls("")
	for range 5 {
		_, err := service.Look(t.Context(), group)
		must(t, err)
	}
	group.Template = vcsim.Template
	between := v.Calls("")
	for range 5 {
		_, err := service.Look(t.Context(), group)
		must(t, err)
	}
	if other, same := between-before, v.Calls("")-between; other > same+10 {
		t.Errorf("five looks take %d requests, with another spelling %d", same, other)
	}
}

// TestAFolderThatWasRenamed: it is not reported as gone.
func TestAFolderThatWasRenamed(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, group := New(time.Now), groupOf(v)
	must(t, service.Do(t.Context(), vcenter.Order{Group: group, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(group, "shop-web-0")))
	until(t, service, group, "the machine", rests(1))
	if found, err := service.Look(t.Context(), groupNamed(v, "shop-db", "uid-2")); err != nil || found.Elsewhere != "" {
		t.Errorf("another group's machine is reported at %q, error %v", found.Elsewhere, err)
	}
	v.RenameFolder("shop-web", "theirs")
	if found, err := service.Look(t.Context(), group); err != nil || found.Folder != "" || found.Elsewhere != "/DC0/vm/theirs/shop-web-0" {
		t.Errorf("found %+v, error %v", found, err)
	}
}
