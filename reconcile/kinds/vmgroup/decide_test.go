package vmgroup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// noon is the time of the tests' passes.
//
//nolint:gochecknoglobals // a constant that Go cannot have as one
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// web returns a group of three machines with 2 CPUs and 1 GiB.
func web(change ...func(*v1alpha1.VmGroup)) v1alpha1.VmGroup {
	group := v1alpha1.VmGroup{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1", Generation: 3}}
	group.Spec = v1alpha1.VmGroupSpec{CPU: 2, Memory: 1, Replicas: 3, Template: "ubuntu"}
	for _, one := range change {
		one(&group)
	}
	return group
}

// machine returns one of web's machines, powered on and as the spec says.
func machine(number int, change ...func(*vcenter.Machine)) vcenter.Machine {
	name := fmt.Sprintf("shop-web-%d", number)
	one := vcenter.Machine{ID: fmt.Sprintf("vm-%d", number), Name: name, Owner: "u1", Slot: name, Original: true, Template: "ubuntu", CPU: 2, MemoryMiB: 1024, Power: vcenter.PowerOn, Connected: true}
	for _, by := range change {
		by(&one)
	}
	return one
}

func off(one *vcenter.Machine)       { one.Power = vcenter.PowerOff }
func suspended(one *vcenter.Machine) { one.Power = vcenter.PowerSuspended }
func making(one *vcenter.Machine) {
	*one = vcenter.Machine{ID: one.ID, Name: one.Name, Creating: true}
}
func busy(one *vcenter.Machine)    { one.Busy = true }
func byGroup(one *vcenter.Machine) { one.Ordered = true }
func lost(one *vcenter.Machine)    { one.Connected = false }
func unread(state string) func(*vcenter.Machine) {
	return func(one *vcenter.Machine) {
		*one = vcenter.Machine{ID: one.ID, Name: one.Name, ConfigUnreadable: true, Broken: state}
	}
}
func orphaned(one *vcenter.Machine) { one.Connected, one.Broken = false, "orphaned" }
func tools(one *vcenter.Machine)    { one.Tools = true }
func small(one *vcenter.Machine)    { one.CPU = 1 }
func growing(one *vcenter.Machine)  { one.GrowsCPU, one.GrowsMemory = true, true }
func large(one *vcenter.Machine)    { one.CPU = 4 }
func old(one *vcenter.Machine)      { one.Template = "debian" }
func unmarked(one *vcenter.Machine) { one.Owner, one.Slot, one.Template = "", "", "" }
func copied(one *vcenter.Machine)   { one.Name, one.Original, one.ID = "copy", false, "vm-copy" }
func restored(one *vcenter.Machine) { one.Original = false }
func another(one *vcenter.Machine)  { one.Owner = "u2" }
func named(name string) func(*vcenter.Machine) {
	return func(one *vcenter.Machine) { one.Name = name }
}

// was sets where the group was last seen, and how many machines ran there.
func was(path string, running int32) func(*v1alpha1.VmGroup) {
	return func(g *v1alpha1.VmGroup) { g.Status.Folder, g.Status.CurrentReplicas = path, &running }
}

// folder returns web's folder with these machines.
func folder(machines ...vcenter.Machine) vcenter.Inventory {
	return vcenter.Inventory{Folder: "group-v1", Path: "/DC0/vm/shop-web", VCenter: "vc1", Machines: machines}
}

func resting(number int) vcenter.Failure {
	name := fmt.Sprintf("shop-web-%d", number)
	return vcenter.Failure{Machine: name, Verb: vcenter.Clone, Reason: vcenter.Failed, Message: "Clone of " + name + ": no space", InBackoff: true}
}

// unfit returns the failure of a change of a machine to this number of CPUs.
func unfit(verb vcenter.Verb, number int, cpu int32) vcenter.Failure {
	failure := failed(verb, number)
	failure.CPU, failure.MemoryMiB = cpu, 1024
	return failure
}

// again returns a failure that happened twice.
func again(failure vcenter.Failure) vcenter.Failure {
	failure.Times = 2
	return failure
}

// disturbed returns a failure because of another task on the machine.
func disturbed(failure vcenter.Failure) vcenter.Failure {
	failure.Reason, failure.Message = vcenter.Moved, failure.Machine+" is busy"
	return failure
}

func tired(failure vcenter.Failure) vcenter.Failure {
	failure.InBackoff = false
	return failure
}

func forbidden(failure vcenter.Failure) vcenter.Failure {
	failure.Reason = vcenter.Forbidden
	return failure
}

// away returns the failure to create a machine that exists in another place.
func away(number int) vcenter.Failure {
	failure := resting(number)
	failure.Reason, failure.Message = vcenter.MachineMoved, failure.Machine+" is at /DC0/vm/x"
	return failure
}

// said returns a plan as one line.
func said(p decision) string {
	words := []string{}
	for _, one := range p.steps {
		word := strings.TrimSpace(string(one.verb) + " " + strings.TrimPrefix(one.machine, "shop-web-"))
		if one.replaces {
			word += " to replace it"
		}
		words = append(words, word)
	}
	if p.problem != nil {
		words = append(words, "problem "+p.problem.Reason)
	}
	for _, one := range p.waitReasons {
		words = append(words, "waits: "+one)
	}
	if p.release {
		words = append(words, "release")
	}
	if p.left != "" {
		words = append(words, "left: "+p.left)
	}
	return strings.Join(words, "; ")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	replicas := func(number int32) func(*v1alpha1.VmGroup) {
		return func(g *v1alpha1.VmGroup) { g.Spec.Replicas = number }
	}
	with := func(seen vcenter.Inventory, change func(*vcenter.Inventory)) vcenter.Inventory {
		change(&seen)
		return seen
	}
	cloning := func(numbers ...int) func(*vcenter.Inventory) {
		return func(seen *vcenter.Inventory) {
			for _, number := range numbers {
				seen.Cloning = append(seen.Cloning, fmt.Sprintf("shop-web-%d", number))
			}
		}
	}
	failing := func(one vcenter.Failure) func(*vcenter.Inventory) {
		return func(seen *vcenter.Inventory) { seen.Failures = append(seen.Failures, one) }
	}
	asked := func(ago time.Duration, number int) map[string]time.Time {
		return map[string]time.Time{fmt.Sprintf("vm-%d", number): noon.Add(-ago)}
	}
	for story, test := range map[string]struct {
		group    v1alpha1.VmGroup
		seen     vcenter.Inventory
		stopping map[string]time.Time
		want     string
	}{
		"nothing is there":                           {web(), vcenter.Inventory{Path: "/DC0/vm/shop-web"}, nil, "CreateFolder"},
		"its folder could not be made":               {web(), vcenter.Inventory{Failures: []vcenter.Failure{{Verb: vcenter.CreateFolder, Reason: vcenter.Forbidden, Message: "no", InBackoff: true}}}, nil, "problem PermissionDenied"},
		"the first machine is made alone":            {web(), folder(), nil, "Clone 0; waits: shop-web-1 must still be created; waits: shop-web-2 must still be created"},
		"the first is being made":                    {web(), with(folder(), cloning(0)), nil, "waits: shop-web-0 is being created; waits: shop-web-1 must still be created; waits: shop-web-2 must still be created"},
		"the first is there, off":                    {web(), folder(machine(0, off)), nil, "PowerOn 0; Clone 1; Clone 2"},
		"all run":                                    {web(), folder(machine(0), machine(1), machine(2)), nil, ""},
		"one was deleted":                            {web(), folder(machine(0), machine(2)), nil, "Clone 1"},
		"one was powered off":                        {web(), folder(machine(0), machine(1, off), machine(2)), nil, "PowerOn 1"},
		"one was suspended":                          {web(), folder(machine(0), machine(1, suspended), machine(2)), nil, "PowerOn 1"},
		"one was renamed":                            {web(), folder(machine(0), machine(1, named("db")), machine(2)), nil, ""},
		"one was copied":                             {web(), folder(machine(0), machine(1), machine(1, copied, off), machine(2)), nil, ""},
		"one was copied, and then deleted":           {web(), folder(machine(0), machine(1, copied, off), machine(2)), nil, "Clone 1"},
		"one was restored from a backup":             {web(), folder(machine(0), machine(1, restored), machine(2)), nil, ""},
		"fewer: a copy stays":                        {web(replicas(1)), folder(machine(0), machine(2, copied, off)), nil, ""},
		"all at once have their limit":               {web(replicas(9)), folder(machine(0)), nil, "Clone 1; Clone 2; Clone 3; Clone 4; waits: shop-web-5 must still be created; waits: shop-web-6 must still be created; waits: shop-web-7 must still be created; waits: shop-web-8 must still be created"},
		"what is being made counts":                  {web(replicas(6)), with(folder(machine(0)), cloning(1, 2, 3)), nil, "Clone 4; waits: shop-web-1 is being created; waits: shop-web-2 is being created; waits: shop-web-3 is being created; waits: shop-web-5 must still be created"},
		"a killed operator's clone":                  {web(), folder(machine(0), machine(1), machine(2, making)), nil, "waits: shop-web-2 is being created"},
		"a user's machine has the name":              {web(), folder(machine(0), machine(1), machine(2, unmarked)), nil, "problem MachineOccupied"},
		"another group's folder":                     {web(), folder(machine(0, another)), nil, "problem FolderOccupied"},
		"another group's machine among its own":      {web(), folder(machine(0), machine(7, another)), nil, "problem FolderOccupied"},
		"a user's machine in the folder too":         {web(), folder(machine(0), machine(1), machine(2), machine(5, unmarked, named("x"))), nil, ""},
		"the vCenter runs a task":                    {web(), folder(machine(0), machine(1, off, busy), machine(2)), nil, "waits: the vCenter runs a task on shop-web-1"},
		"the vCenter moves one of them":              {web(), folder(machine(0), machine(1, busy), machine(2)), nil, ""},
		"the vCenter moves one, others change":       {web(), folder(machine(0, small), machine(1, busy), machine(2)), nil, "waits: the operator changes shop-web-0 when the others run"},
		"the vCenter moves one, another is down":     {web(), folder(machine(0, small, off), machine(1, busy), machine(2)), nil, "Resize 0"},
		"what the group ordered is in progress":      {web(), folder(machine(0), machine(1, busy, byGroup), machine(2)), nil, "waits: the vCenter runs a task on shop-web-1"},
		"the vCenter moves what is to change":        {web(), folder(machine(0), machine(1, busy, small), machine(2)), nil, "waits: the vCenter runs a task on shop-web-1"},
		"fewer: the vCenter moves the one to delete": {web(replicas(2)), folder(machine(0), machine(1), machine(2, busy)), nil, "waits: the vCenter runs a task on shop-web-2"},
		"a host is lost":                             {web(), folder(machine(0), machine(1, lost), machine(2)), nil, "waits: the host of shop-web-1 does not answer the vCenter"},
		"a datastore is lost":                        {web(), folder(machine(0), machine(1, unread("inaccessible")), machine(2, off)), nil, "PowerOn 2; problem MachineBroken"},
		"a datastore is lost, another size":          {web(), folder(machine(0, small), machine(1, unread("inaccessible")), machine(2)), nil, "problem MachineBroken; waits: the operator changes shop-web-0 when the others run"},
		"a machine was deleted on its host":          {web(), folder(machine(0), machine(1, orphaned), machine(2)), nil, "problem MachineBroken"},
		"a host is lost, and the configuration":      {web(), folder(machine(0), machine(1, unread("")), machine(2)), nil, "waits: the host of shop-web-1 does not answer the vCenter"},
		"fewer: one's datastore is lost":             {web(replicas(1)), folder(machine(0), machine(1, off), machine(2, unread("invalid"))), nil, "Destroy 1; problem MachineBroken"},
		"the datastore of a user's machine is lost":  {web(), folder(machine(0), machine(1), machine(2), machine(5, unread("invalid"), named("x"))), nil, ""},
		"a clone failed":                             {web(), with(folder(machine(0), machine(1)), func(i *vcenter.Inventory) { i.Failures = []vcenter.Failure{resting(2)} }), nil, "problem TaskFailed"},
		"a clone failed a while ago":                 {web(), with(folder(machine(0), machine(1)), func(i *vcenter.Inventory) { f := resting(2); f.InBackoff = false; i.Failures = []vcenter.Failure{f} }), nil, "Clone 2; problem TaskFailed"},
		"a clone failed, among others":               {web(), with(folder(machine(0)), failing(resting(2))), nil, "Clone 1; problem TaskFailed"},
		"a clone failed, others are being made":      {web(replicas(6)), with(with(folder(machine(0)), failing(resting(5))), cloning(1, 2, 3, 4)), nil, "problem TaskFailed; waits: shop-web-1 is being created; waits: shop-web-2 is being created; waits: shop-web-3 is being created; waits: shop-web-4 is being created"},
		"a clone failed, and is there all the same":  {web(), with(folder(machine(0), machine(1), machine(2)), failing(resting(2))), nil, ""},
		"a start failed, a user did it":              {web(), with(folder(machine(0), machine(1), machine(2)), failing(failed(vcenter.Start, 2))), nil, ""},
		"a machine was moved":                        {web(), with(folder(machine(0), machine(1, off)), failing(away(2))), nil, "PowerOn 1; problem MachineMoved"},
		"a machine was moved, another size":          {web(), with(folder(machine(0, small), machine(1)), failing(away(2))), nil, "problem MachineMoved; waits: the operator changes shop-web-0 when the others run"},
		"a machine was moved, and is back":           {web(), with(folder(machine(0), machine(1), machine(2)), failing(away(2))), nil, ""},
		"a start failed":                             {web(), with(folder(machine(0), machine(1), machine(2, off)), failing(failed(vcenter.Start, 2))), nil, "problem TaskFailed"},
		"a resize failed: it runs meanwhile":         {web(), with(folder(machine(0), machine(1), machine(2, small, off)), failing(unfit(vcenter.Resize, 2, 2))), nil, "PowerOn 2; problem TaskFailed"},
		"a resize failed: it stays on":               {web(), with(folder(machine(0), machine(1, small), machine(2, small)), failing(unfit(vcenter.Resize, 2, 2))), nil, "problem TaskFailed; waits: the operator changes shop-web-1 when the others run"},
		"a resize failed a while ago":                {web(), with(folder(machine(0), machine(1), machine(2, small)), failing(tired(unfit(vcenter.Resize, 2, 2)))), nil, "PowerOff 2"},
		"a resize failed a while ago, it is off":     {web(), with(folder(machine(0), machine(1), machine(2, small, off)), failing(tired(unfit(vcenter.Resize, 2, 2)))), nil, "Resize 2; problem TaskFailed"},
		"a resize to another size failed":            {web(), with(folder(machine(0), machine(1), machine(2, small, off)), failing(unfit(vcenter.Resize, 2, 4))), nil, "Resize 2"},
		"a hot add failed once":                      {web(), with(folder(machine(0), machine(1), machine(2, small, growing)), failing(unfit(vcenter.Grow, 2, 2))), nil, "problem TaskFailed"},
		"a hot add failed once, a while ago":         {web(), with(folder(machine(0), machine(1), machine(2, small, growing)), failing(tired(unfit(vcenter.Grow, 2, 2)))), nil, "HotAdd 2; problem TaskFailed"},
		"a hot add failed twice: it is shut down":    {web(), with(folder(machine(0), machine(1), machine(2, small, growing)), failing(again(unfit(vcenter.Grow, 2, 2)))), nil, "PowerOff 2"},
		"a hot add was disturbed":                    {web(), with(folder(machine(0), machine(1), machine(2, small, growing)), failing(again(disturbed(unfit(vcenter.Grow, 2, 2))))), nil, "waits: shop-web-2 is busy"},
		"a resize was disturbed: it stays off":       {web(), with(folder(machine(0), machine(1), machine(2, small, off)), failing(disturbed(unfit(vcenter.Resize, 2, 2)))), nil, "waits: shop-web-2 is busy"},
		"a renamed one cannot be read":               {web(), folder(machine(0), machine(1, unread("inaccessible"), named("db")), machine(2, off)), nil, "PowerOn 2; problem MachineBroken"},
		"a hot add failed: it is down":               {web(), with(folder(machine(0), machine(1), machine(2, small, growing, off)), failing(unfit(vcenter.Grow, 2, 2))), nil, "Resize 2"},
		"a hot add failed, and so did a resize":      {web(), with(with(folder(machine(0), machine(1), machine(2, small, growing)), failing(unfit(vcenter.Grow, 2, 2))), failing(unfit(vcenter.Resize, 2, 2))), nil, "problem TaskFailed"},
		"a hot add to another size failed":           {web(), with(folder(machine(0), machine(1), machine(2, small, growing)), failing(unfit(vcenter.Grow, 2, 4))), nil, "HotAdd 2"},
		"a hot add is not permitted":                 {web(), with(folder(machine(0), machine(1), machine(2, small, growing)), failing(forbidden(unfit(vcenter.Grow, 2, 2)))), nil, "problem PermissionDenied"},
		"a resize failed, and is not wanted now":     {web(), with(folder(machine(0), machine(1), machine(2, off)), failing(failed(vcenter.Resize, 2))), nil, "PowerOn 2"},
		"a resize failed, it must be deleted now":    {web(replicas(2)), with(folder(machine(0), machine(1), machine(2, small, off)), failing(failed(vcenter.Resize, 2))), nil, "Destroy 2"},
		"a failed one is deleted too":                {web(replicas(2)), with(folder(machine(0), machine(1), machine(2, small, off)), failing(failed(vcenter.Destroy, 2))), nil, "problem TaskFailed"},
		"a killed operator started the clone": {web(), with(folder(machine(0), machine(1)), func(i *vcenter.Inventory) {
			f := resting(2)
			f.Reason, f.Message = vcenter.Moved, "shop-web-2 is made"
			i.Failures = []vcenter.Failure{f}
		}), nil, "waits: shop-web-2 is made"},
		"fewer: the highest numbers go":           {web(replicas(1)), folder(machine(0), machine(1), machine(2)), nil, "PowerOff 2; PowerOff 1"},
		"fewer: guests are asked":                 {web(replicas(1)), folder(machine(0), machine(1, tools), machine(2, off)), nil, "Destroy 2; Shutdown 1"},
		"fewer: a guest takes its time":           {web(replicas(2)), folder(machine(0), machine(1), machine(2, tools)), asked(time.Minute, 2), "waits: shop-web-2 is shutting down"},
		"fewer: a guest takes too long":           {web(replicas(2)), folder(machine(0), machine(1), machine(2, tools)), asked(3*time.Minute, 2), "PowerOff 2"},
		"fewer while one is missing":              {web(replicas(2)), folder(machine(0), machine(2, off)), nil, "Clone 1; Destroy 2"},
		"ten is more than nine":                   {web(replicas(9)), folder(machine(0), machine(1), machine(2), machine(3), machine(4), machine(5), machine(6), machine(7), machine(8), machine(9, off), machine(10, off)), nil, "Destroy 10; Destroy 9"},
		"another size: one at a time, last first": {web(), folder(machine(0, small), machine(1, small), machine(2, small)), nil, "PowerOff 2; waits: the operator changes 2 more machines after shop-web-2"},
		"another size: it is off now":             {web(), folder(machine(0, small), machine(1, small), machine(2, small, off)), nil, "Resize 2; waits: the operator changes shop-web-1 when the others run"},
		"another size: it is not on again yet":    {web(), folder(machine(0, small), machine(1, small), machine(2, off)), nil, "PowerOn 2; waits: the operator changes shop-web-1 when the others run"},
		"another size: the next":                  {web(), folder(machine(0, small), machine(1, small), machine(2)), nil, "PowerOff 1; waits: the operator changes 1 more machines after shop-web-1"},
		"another size: it may grow":               {web(), folder(machine(0, small, growing), machine(1, small, growing), machine(2)), nil, "HotAdd 0; HotAdd 1"},
		"another size: it may not shrink":         {web(), folder(machine(0), machine(1), machine(2, large, growing)), nil, "PowerOff 2"},
		"another size: a guest is asked":          {web(), folder(machine(0), machine(1, small, tools), machine(2)), nil, "Shutdown 1"},
		"another size: never while one is down":   {web(), folder(machine(0), machine(1, small), machine(2, off)), nil, "PowerOn 2; waits: the operator changes shop-web-1 when the others run"},
		"another size: suspended ones run first":  {web(), folder(machine(0), machine(1, small, suspended), machine(2)), nil, "PowerOn 1"},
		"another template: one is stopped":        {web(), folder(machine(0, old), machine(1, old), machine(2)), nil, "PowerOff 1 to replace it; waits: the operator changes 1 more machines after shop-web-1"},
		"another template: it is off now":         {web(), folder(machine(0, old), machine(1, old, off), machine(2)), nil, "Destroy 1 to replace it; waits: the operator changes 1 more machines after shop-web-1"},
		"another template: it is gone":            {web(), folder(machine(0, old), machine(2)), nil, "Clone 1; waits: the operator changes shop-web-0 when the others run"},
		"another template: what began continues":  {web(), folder(machine(0, old), machine(1, old, tools), machine(2, off)), asked(3*time.Minute, 1), "PowerOn 2; PowerOff 1 to replace it; waits: the operator changes 1 more machines after shop-web-1"},
		"another vCenter":                         {web(func(g *v1alpha1.VmGroup) { g.Status.VCenterID = "vc0" }), folder(), nil, "problem VCenterChanged"},
		"its folder was renamed":                  {web(was("/DC0/vm/shop-web", 3)), vcenter.Inventory{Path: "/DC0/vm/shop-web", Elsewhere: "/DC0/vm/x/shop-web-0"}, nil, "problem VCenterChanged"},
		"another place":                           {web(was("/DC1/vm/shop-web", 1)), vcenter.Inventory{Path: "/DC0/vm/shop-web"}, nil, "problem VCenterChanged"},
		"another place: nothing ran":              {web(was("/DC1/vm/shop-web", 0)), vcenter.Inventory{Path: "/DC0/vm/shop-web"}, nil, "problem VCenterChanged"},
		"another place: a folder has the name":    {web(was("/DC1/vm/shop-web", 0)), folder(), nil, "problem VCenterChanged"},
		"another place: one machine is there":     {web(was("/DC1/vm/shop-web", 3)), folder(machine(1)), nil, "problem VCenterChanged"},
		"another place: restored machines":        {web(was("/DC1/vm/shop-web", 1)), folder(machine(1, restored)), nil, "problem VCenterChanged"},
		"its folder was moved, one stayed":        {web(was("/DC0/vm/old/shop-web", 3)), folder(machine(0), machine(1)), nil, "problem VCenterChanged"},
		"its folder was moved, with them all":     {web(was("/DC0/vm/old/shop-web", 2)), folder(machine(0), machine(1), machine(2, off)), nil, "PowerOn 2"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			test.want = strings.ReplaceAll(test.want, "Resize", string(vcenter.Resize))
			if diff := cmp.Diff(test.want, said(decide(test.group, observed{now: noon, inventory: test.seen, stopping: test.stopping}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// perfect is a vCenter that carries out each order at once, without failures.
type perfect struct{ inventory vcenter.Inventory }

func (p *perfect) do(group v1alpha1.VmGroup, one step) {
	machines := []vcenter.Machine{}
	for _, there := range p.inventory.Machines {
		switch {
		case there.ID != one.id:
		case one.verb == vcenter.Destroy:
			continue
		case one.verb == vcenter.Start:
			there.Power = vcenter.PowerOn
		case one.verb == vcenter.Stop, one.verb == vcenter.Shutdown:
			there.Power = vcenter.PowerOff
		case one.verb == vcenter.Resize, one.verb == vcenter.Grow:
			there.CPU, there.MemoryMiB = group.Spec.CPU, memoryMiB(group)
		}
		machines = append(machines, there)
	}
	switch one.verb {
	case vcenter.CreateFolder:
		p.inventory.Folder = "f"
	case vcenter.DeleteFolder:
		p.inventory.Folder = ""
	case vcenter.Clone:
		made := machine(numberOf("shop-web", one.machine), off)
		made.CPU, made.MemoryMiB, made.Template = group.Spec.CPU, memoryMiB(group), group.Spec.Template
		machines = append(machines, made)
	case vcenter.Start, vcenter.Shutdown, vcenter.Stop, vcenter.Resize, vcenter.Grow, vcenter.Destroy:
	}
	p.inventory.Machines = machines
}

// TestEveryGroupArrives: from each of these states, a group reaches what its spec says. It never creates two machines of one name. While it
// is changed, only one of its machines is down.
func TestEveryGroupArrives(t *testing.T) {
	t.Parallel()
	states := []func(*vcenter.Machine){func(*vcenter.Machine) {}, off, small, old, func(m *vcenter.Machine) { small(m); growing(m) }, func(m *vcenter.Machine) { off(m); small(m) }, func(m *vcenter.Machine) { suspended(m); small(m) }, tools, func(m *vcenter.Machine) { tools(m); old(m) }}
	for first := range states {
		for second := range states {
			for _, replicas := range []int32{1, 2, 4} {
				group := web(func(g *v1alpha1.VmGroup) { g.Spec.Replicas = replicas })
				sim := &perfect{folder(machine(0, states[first]), machine(2, states[second]))}
				arrives(t, group, sim)
			}
		}
	}
}

func arrives(t *testing.T, group v1alpha1.VmGroup, sim *perfect) {
	t.Helper()
	for range 40 {
		next := decide(group, observed{now: noon, inventory: sim.inventory})
		if next.settled() {
			if int(group.Spec.Replicas) != len(sim.inventory.Machines) || next.running != group.Spec.Replicas {
				t.Errorf("settled with %+v", sim.inventory.Machines)
			}
			return
		}
		for _, one := range next.steps {
			sim.do(group, one)
		}
		names := map[string]bool{}
		for _, one := range sim.inventory.Machines {
			if names[one.Name] {
				t.Fatalf("there are two %s", one.Name)
			}
			names[one.Name] = true
		}
	}
	t.Errorf("does not reach its spec: %s", said(decide(group, observed{now: noon, inventory: sim.inventory})))
}
