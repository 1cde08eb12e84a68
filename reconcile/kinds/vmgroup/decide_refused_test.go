package vmgroup

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// TestNoMachineStaysDownForWhatIsRefused: if the vCenter refuses every change of size, all machines run in the end. At most one is down
// meanwhile, and none stops a second time before its pause is over.
func TestNoMachineStaysDownForWhatIsRefused(t *testing.T) {
	t.Parallel()
	shrinking := func(one *vcenter.Machine) { one.CPU = 4 }
	for story, states := range map[string][]func(*vcenter.Machine){
		"none may grow":          {small, small, small},
		"all may grow":           {func(m *vcenter.Machine) { small(m); growing(m) }, func(m *vcenter.Machine) { small(m); growing(m) }, func(m *vcenter.Machine) { small(m); growing(m) }},
		"one is off, one shrink": {func(m *vcenter.Machine) { small(m); off(m) }, func(*vcenter.Machine) {}, shrinking},
		"one is suspended":       {func(m *vcenter.Machine) { small(m); suspended(m) }, func(*vcenter.Machine) {}, func(*vcenter.Machine) {}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			sim := &perfect{folder(machine(0, states[0]), machine(1, states[1]), machine(2, states[2]))}
			stops := map[string]int{}
			for range 30 {
				for _, one := range decide(web(), observed{now: noon, inventory: sim.inventory}).steps {
					sim.refusing(web(), one)
					if one.verb == vcenter.Stop || one.verb == vcenter.Shutdown {
						stops[one.machine]++
					}
				}
				if down := sim.down(); down > 1 {
					t.Fatalf("%d machines are down", down)
				}
			}
			last := decide(web(), observed{now: noon, inventory: sim.inventory})
			if sim.down() > 0 || len(last.steps) > 0 || last.problem == nil {
				t.Errorf("%d machines are down; then: %s", sim.down(), said(last))
			}
			for name, count := range stops {
				if count > 1 {
					t.Errorf("%s was taken down %d times", name, count)
				}
			}
		})
	}
}

// refusing carries out an order, but changes no size.
func (p *perfect) refusing(group v1alpha1.VmGroup, one step) {
	if one.verb != vcenter.Resize && one.verb != vcenter.Grow {
		p.do(group, one)
		return
	}
	p.inventory.Failures = append(p.inventory.Failures, vcenter.Failure{
		Machine: one.machine, Verb: one.verb, CPU: group.Spec.CPU, MemoryMiB: memoryMiB(group), Reason: vcenter.Failed, Message: "no", InBackoff: true,
	})
}

func (p *perfect) down() int {
	count := 0
	for _, one := range p.inventory.Machines {
		if one.Power != vcenter.PowerOn {
			count++
		}
	}
	return count
}
