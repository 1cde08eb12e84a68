package vmgroup

import (
	"cmp"
	"slices"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// sorted is what is in a group's folder, by whose it is.
type sorted struct {
	// own are the group's machines, by the name they were made under.
	own map[string]vcenter.Machine
	// others are the names of what is not the group's, of another group's machines too; copies are machines that somebody made of the group's.
	others, copies []string
	// foreign is the first machine with another group's mark.
	foreign string
	// taken are the machines without a mark, by name.
	taken map[string]vcenter.Machine
	// unknown are machines whose mark cannot be read, and whose name tells nothing: the group's that were renamed may be among them.
	unknown []vcenter.Machine
	// running is how many of the group's machines are powered on.
	running int32
}

// sort finds out whose everything is. A machine is the group's if it has the mark, and either is the very one that was made for it, perhaps
// renamed, or has the name, perhaps restored from a backup. Any other with the mark was copied by somebody, and is theirs. One whose mark
// cannot be read is known by its name: nothing is done to it, and none is made in its place.
func sort(folder, uid string, seen vcenter.Inventory) sorted {
	found := sorted{own: map[string]vcenter.Machine{}, taken: map[string]vcenter.Machine{}, others: slices.Clone(seen.Others)}
	marked := slices.DeleteFunc(slices.Clone(seen.Machines), func(one vcenter.Machine) bool { return one.Owner != uid })
	// Those that have kept their names first.
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

// unmarked sorts what does not have the group's mark.
func (s *sorted) unmarked(folder string, one vcenter.Machine) {
	if _, known := s.own[one.Name]; one.Unread && !known && numberOf(folder, one.Name) >= 0 {
		one.Slot = one.Name
		s.own[one.Name] = one
		return
	}
	if one.Unread {
		one.Slot = one.Name
		s.unknown = append(s.unknown, one)
	}
	s.others = append(s.others, one.Name)
	if one.Owner == "" {
		s.taken[one.Name] = one
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
