package vmgroup

import (
	"cmp"
	"slices"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// ownership has the content of a group's folder, by owner.
type ownership struct {
	// own has the group's machines, by the name that they were created with.
	own map[string]vcenter.Machine
	// others has the names of what is not the group's, including machines of other groups. copies has machines that users made of the
	// group's.
	others, copies []string
	// foreign is the first machine with another group's mark.
	foreign string
	// unmarkedMachines has the machines without a mark, by name.
	unmarkedMachines map[string]vcenter.Machine
	// unknown has machines whose mark cannot be read, and whose name shows no number: renamed machines of the group may be among them.
	unknown []vcenter.Machine
	// running is the number of the group's machines that are powered on.
	running int32
}

// sortByOwner finds the owner of everything. A machine is the group's if it has the mark, and one of two things is true. Either it is the
// original machine, perhaps renamed. Or it has the original name, perhaps restored from a backup. Any other machine with the mark is a
// user's copy. A machine whose mark cannot be read is recognized by its name: the operator does nothing to it, and creates none in its
// place.
func sortByOwner(folder, uid string, seen vcenter.Inventory) ownership {
	found := ownership{own: map[string]vcenter.Machine{}, unmarkedMachines: map[string]vcenter.Machine{}, others: slices.Clone(seen.Others)}
	marked := slices.DeleteFunc(slices.Clone(seen.Machines), func(one vcenter.Machine) bool { return one.Owner != uid })
	// Machines that still have their names come first.
	slices.SortStableFunc(marked, func(a, b vcenter.Machine) int { return cmp.Compare(renamed(a), renamed(b)) })
	for _, one := range marked {
		if _, twice := found.own[one.Slot]; twice || one.Name != one.Slot && !one.Original {
			found.copies = append(found.copies, one.Name)
			continue
		}
		found.own[one.Slot] = one
		if one.Power == vcenter.PowerOn && one.Connected {
			found.running++
		}
	}
	for _, one := range seen.Machines {
		if one.Owner != uid {
			found.unmarked(folder, one)
		}
	}
	return found
}

// unmarked sorts a machine without the group's mark.
func (s *ownership) unmarked(folder string, one vcenter.Machine) {
	if _, known := s.own[one.Name]; one.ConfigUnreadable && !known && numberOf(folder, one.Name) >= 0 {
		one.Slot = one.Name
		s.own[one.Name] = one
		return
	}
	if one.ConfigUnreadable {
		one.Slot = one.Name
		s.unknown = append(s.unknown, one)
	}
	s.others = append(s.others, one.Name)
	if one.Owner == "" {
		s.unmarkedMachines[one.Name] = one
		return
	}
	s.foreign = cmp.Or(s.foreign, one.Name)
}

func renamed(one vcenter.Machine) int {
	if one.Name == one.Slot {
		return 0
	}
	return 1
}
