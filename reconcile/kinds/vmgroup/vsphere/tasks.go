//go:build !without_vcenter

package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// The pauses before a failed task of a machine is retried, which double with each failure.
const (
	retryFirst = 5 * time.Second
	retryCap   = 10 * time.Minute
	// retryResize is the first pause for a machine that was shut down for a resize and runs again: it must not be shut down all the time.
	retryResize = retryCap
	// retryAway is the longest pause for a machine that was moved: a user may delete it where it is.
	retryAway = time.Minute
)

// failureLife is how long after its pause a failure is remembered. If there was no retry until then, the order is no longer wanted, or the
// group is gone.
const failureLife = retryCap

// taskTarget is the object of a task: a machine of a group, or the group's folder if the name is empty.
type taskTarget struct {
	uid, machine string
}

func (s taskTarget) String() string { return cmp.Or(s.machine, "the group's folder") }

// attempt is an order for a machine, with the size if the order changes that.
type attempt struct {
	verb   vcenter.Verb
	cpu    int32
	memory int64
}

func attemptOf(order vcenter.Order) attempt {
	one := attempt{verb: order.Verb}
	if aboutSize(order.Verb) {
		one.cpu, one.memory = order.CPU, order.MemoryMiB
	}
	return one
}

func aboutSize(verb vcenter.Verb) bool { return verb == vcenter.Resize || verb == vcenter.Grow }

// runningTask is a task in progress.
type runningTask struct {
	attempt
	reference types.ManagedObjectReference
}

// failureKey is the key of failures. It has the verb, because a machine that could not be resized may be started meanwhile.
type failureKey struct {
	taskTarget
	verb vcenter.Verb
}

// failure is a task that failed, and how often in a row.
type failure struct {
	vcenter.Failure
	times int
	until time.Time
}

// of reports whether a failure is of the same attempt.
func (f failure) of(one attempt) bool {
	return f.Verb == one.verb && f.CPU == one.cpu && f.MemoryMiB == one.memory
}

// settle reads the results of the tasks in progress. After a restart, the vCenter does not know its earlier tasks: the next look shows what
// they did.
func (s openSession) settle(ctx context.Context) error {
	s.mu.Lock()
	open := maps.Clone(s.tasks)
	s.mu.Unlock()
	references := make([]types.ManagedObjectReference, 0, len(open))
	for _, one := range open {
		references = append(references, one.reference)
	}
	seen, err := s.states(ctx, references)
	if err != nil {
		return err
	}
	for about, one := range open {
		info, known := seen[one.reference]
		switch {
		case !known, info.State == types.TaskInfoStateSuccess:
			s.taskEnded(about, one, nil)
		case info.State == types.TaskInfoStateError:
			s.taskEnded(about, one, failureOf(info.Error))
		}
	}
	return nil
}

// states reads all tasks with one request. If a vCenter no longer knows one of them, it answers for none: states then reads each task
// separately.
func (s openSession) states(ctx context.Context, references []types.ManagedObjectReference) (map[types.ManagedObjectReference]types.TaskInfo, error) {
	found := map[types.ManagedObjectReference]types.TaskInfo{}
	if len(references) == 0 {
		return found, nil
	}
	var tasks []mo.Task
	err := property.DefaultCollector(s.client).Retrieve(ctx, references, []string{"info.state", "info.error"}, &tasks)
	switch {
	case isGone(err) && len(references) == 1:
		return found, nil
	case isGone(err):
		for i := range references {
			one, err := s.states(ctx, references[i:i+1])
			if err != nil {
				return nil, err
			}
			maps.Copy(found, one)
		}
		return found, nil
	case err != nil:
		return nil, err
	}
	for _, one := range tasks {
		found[one.Self] = one.Info
	}
	return found, nil
}

// taskEnded records the end of a task. If the name is taken, the machine exists or is being created, because a killed operator started it:
// the next look shows it.
func (s *session) taskEnded(about taskTarget, one runningTask, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks[about] == one {
		delete(s.tasks, about)
	}
	if err == nil {
		s.forgetFailures(about, one.verb)
		return
	}
	s.note(about, one.attempt, err)
}

// forgetFailures forgets the failures of a machine after a successful order. A start or stop does not forget failures to change its size.
// The caller holds s.mu.
func (s *session) forgetFailures(about taskTarget, verb vcenter.Verb) {
	maps.DeleteFunc(s.failed, func(at failureKey, _ failure) bool {
		return at.taskTarget == about && (!aboutSize(at.verb) || verb == vcenter.Resize || verb == vcenter.Destroy || verb == at.verb)
	})
}

// note records a failure. The caller holds s.mu.
func (s *session) note(about taskTarget, of attempt, err error) {
	times, at := 1, failureKey{about, of.verb}
	if last := s.failed[at]; last.of(of) {
		times += last.times
	}
	meant := errorFor(err, s.account)
	message := fmt.Sprintf("%s of %s: %s", of.verb, about, meant.Message)
	first, limit := retryFirst, retryCap
	if of.verb == vcenter.Resize && meant.Reason != vcenter.Moved {
		first = retryResize
	}
	if fault.Is(err, &types.DuplicateName{}) {
		meant.Reason, message = vcenter.Moved, about.String()+" is already being created: the operator waits for it"
	}
	if meant.Reason == vcenter.MachineMoved {
		message, limit = meant.Message, retryAway
	}
	s.failed[at] = failure{
		Failure: vcenter.Failure{Machine: about.machine, Verb: of.verb, CPU: of.cpu, MemoryMiB: of.memory, Reason: meant.Reason, Message: message, Times: times},
		times:   times, until: s.now().Add(min(first<<min(times-1, 10), limit)),
	}
}

func failureOf(told *types.LocalizedMethodFault) error {
	if told == nil {
		told = &types.LocalizedMethodFault{LocalizedMessage: "no reason given"}
	}
	return task.Error{LocalizedMethodFault: told}
}

// underway returns the group's machines that are being cloned, those with another task, and its failures.
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
	maps.DeleteFunc(s.failed, func(_ failureKey, one failure) bool { return s.now().Sub(one.until) > failureLife })
	for about, one := range s.failed {
		if about.uid == group.UID {
			one.InBackoff = one.until.After(s.now())
			failures = append(failures, one.Failure)
		}
	}
	slices.Sort(cloning)
	slices.SortFunc(failures, func(a, b vcenter.Failure) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Verb, b.Verb))
	})
	return cloning, worked, failures
}

// busy returns why a task must not start now; nil if it may.
func (s *session) busy(about taskTarget, next attempt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.tasks[about]; is {
		return &vcenter.Error{Reason: vcenter.Moved, Message: about.String() + " is busy"}
	}
	if last := s.failed[failureKey{about, next.verb}]; last.of(next) && last.until.After(s.now()) {
		return &vcenter.Error{Reason: vcenter.Moved, Message: about.String() + " is not tried again yet"}
	}
	clones := 0
	for _, one := range s.tasks {
		if one.verb == vcenter.Clone {
			clones++
		}
	}
	if next.verb == vcenter.Clone && clones >= maxClones {
		return &vcenter.Error{Reason: vcenter.Moved, Message: "other machines are being cloned"}
	}
	return nil
}
