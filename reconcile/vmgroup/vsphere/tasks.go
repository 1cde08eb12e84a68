package vsphere

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/vmgroup/vcenter"
)

// The pauses before a machine is tried again for which a task failed, doubled with every failure.
const (
	retryFirst = 5 * time.Second
	retryCap   = 10 * time.Minute
	// retryAway is the longest for a machine that was moved: somebody may delete it where it is.
	retryAway = time.Minute
)

// failureLife is how long after its pause a failure is remembered: nobody has tried again, and so nobody wants it any more, or the group is gone.
const failureLife = retryCap

// subject is what a task is about: a machine of a group.
type subject struct {
	uid, machine string
}

// begun is a task under way.
type begun struct {
	verb      vcenter.Verb
	reference types.ManagedObjectReference
}

// failure is a task that failed, and how often in a row.
type failure struct {
	vcenter.Failure
	times int
	until time.Time
}

// settle finds out what became of the tasks under way. Those of a vCenter that has restarted are unknown to it: what they did shows.
func (s bound) settle(ctx context.Context) error {
	s.mu.Lock()
	client, open := s.client, maps.Clone(s.tasks)
	s.mu.Unlock()
	for about, one := range open {
		var seen mo.Task
		err := property.DefaultCollector(client).RetrieveOne(ctx, one.reference, []string{"info"}, &seen)
		switch {
		case isGone(err):
			s.over(about, one, nil)
		case err != nil:
			return err
		case seen.Info.State == types.TaskInfoStateError:
			s.over(about, one, failureOf(seen.Info.Error))
		case seen.Info.State == types.TaskInfoStateSuccess:
			s.over(about, one, nil)
		}
	}
	return nil
}

// over notes the end of a task. That a name is taken means that the machine is there, or being made, by an operator that was killed: the next
// look will show it.
func (s *session) over(about subject, one begun, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks[about] == one {
		delete(s.tasks, about)
	}
	if err == nil {
		delete(s.failed, about)
		return
	}
	s.note(about, one.verb, err)
}

// note notes a failure; s.mu is held.
func (s *session) note(about subject, verb vcenter.Verb, err error) {
	times := 1
	if last := s.failed[about]; last.Verb == verb {
		times += last.times
	}
	meant := meaningOf(err, s.account)
	message := string(verb) + " of " + about.machine + ": " + meant.Message
	limit := retryCap
	if fault.Is(err, &types.DuplicateName{}) {
		meant.Reason, message = vcenter.Moved, about.machine+" is being made already: waits for it"
	}
	if meant.Reason == vcenter.Away {
		message, limit = meant.Message, retryAway
	}
	s.failed[about] = failure{
		Failure: vcenter.Failure{Machine: about.machine, Verb: verb, Reason: meant.Reason, Message: message},
		times:   times, until: s.now().Add(min(retryFirst<<min(times-1, 10), limit)),
	}
}

func failureOf(told *types.LocalizedMethodFault) error {
	if told == nil {
		told = &types.LocalizedMethodFault{LocalizedMessage: "no reason given"}
	}
	return task.Error{LocalizedMethodFault: told}
}

// underway tells a group's machines that are being made, those that something else is being done to, and its failures.
func (s *session) underway(group vcenter.Group) (cloning, worked []string, failures []vcenter.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cloning = []string{}
	for about, one := range s.tasks {
		switch {
		case about.uid != group.UID:
		case one.verb == vcenter.Clone:
			cloning = append(cloning, about.machine)
		default:
			worked = append(worked, about.machine)
		}
	}
	maps.DeleteFunc(s.failed, func(_ subject, one failure) bool { return s.now().Sub(one.until) > failureLife })
	for about, one := range s.failed {
		if about.uid == group.UID {
			one.Resting = one.until.After(s.now())
			failures = append(failures, one.Failure)
		}
	}
	slices.Sort(cloning)
	slices.SortFunc(failures, func(a, b vcenter.Failure) int { return cmp.Compare(a.Machine, b.Machine) })
	return cloning, worked, failures
}

// busy says why a task must not begin now; nil if it may.
func (s *session) busy(about subject, verb vcenter.Verb) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.tasks[about]; is {
		return &vcenter.Error{Reason: vcenter.Moved, Message: about.machine + " is busy"}
	}
	if last := s.failed[about]; last.Verb == verb && last.until.After(s.now()) {
		return &vcenter.Error{Reason: vcenter.Moved, Message: about.machine + " is not tried again yet"}
	}
	clones := 0
	for _, one := range s.tasks {
		if one.verb == vcenter.Clone {
			clones++
		}
	}
	if verb == vcenter.Clone && clones >= maxClones {
		return &vcenter.Error{Reason: vcenter.Moved, Message: "other machines are being made"}
	}
	return nil
}
