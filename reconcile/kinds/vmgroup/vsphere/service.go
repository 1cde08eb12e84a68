//go:build !without_vcenter

// Package vsphere speaks to vCenters, through govmomi, for reconcile/kinds/vmgroup. It runs in a process of its own
// (cmd/mysql-operator-vsphere): the library has tables of some thousand types, which every process that is linked with it builds at its
// start.
//
// There is one session for each account, however many groups use it. It is kept by the questions that groups ask all the time, made again
// when the vCenter has forgotten it, and ended when nobody has asked for a while. A vCenter that does not answer, or refuses, is left in
// peace for a time that doubles: whoever asks meanwhile is told what was said last.
package vsphere

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

const (
	// lookTime and doTime are how long the vCenter has to answer one question, with all the requests it takes.
	lookTime = 25 * time.Second
	doTime   = 25 * time.Second
	// requestTime is how long it has for one request.
	requestTime = 15 * time.Second
	// maxRequests is how many requests one vCenter gets at once.
	maxRequests = 8
	// maxClones is how many machines are made at once in one vCenter; vSphere copies eight at once from or to a datastore (vSphere
	// documentation, "Limits on Simultaneous Migrations").
	maxClones = 4
	// maxSessions is how many accounts have a session at once, which is far more than one operator is for: each keeps a connection open.
	maxSessions = 256
	// logoutTime is how long the vCenter has to end a session.
	logoutTime = 3 * time.Second
	// idle is after how long without a question a session is ended. A vCenter does so after 30 minutes.
	idle = 5 * time.Minute
)

// Service is a vcenter.API for any number of vCenters.
type Service struct {
	now func() time.Time

	mu       sync.Mutex
	sessions map[vcenter.Account]*session
}

// New makes a service. now is the clock.
func New(now func() time.Time) *Service {
	return &Service{now: now, sessions: map[vcenter.Account]*session{}}
}

// Look is vcenter.API's.
func (s *Service) Look(ctx context.Context, group vcenter.Group) (vcenter.Inventory, error) {
	found := vcenter.Inventory{}
	err := s.with(ctx, group.Account, lookTime, func(ctx context.Context, one bound) error {
		var err error
		found, err = one.look(ctx, group)
		return err
	})
	return found, err
}

// Do is vcenter.API's.
func (s *Service) Do(ctx context.Context, order vcenter.Order) error {
	return s.with(ctx, order.Group.Account, doTime, func(ctx context.Context, one bound) error {
		return one.do(ctx, order)
	})
}

// with asks something within a session, at most for so long. A session that the vCenter does not know any more is made anew, once.
func (s *Service) with(ctx context.Context, account vcenter.Account, limit time.Duration, ask func(context.Context, bound) error) error {
	one, spare, err := s.session(account)
	if err != nil {
		return err
	}
	if spare != nil {
		leaving, cancel := context.WithTimeout(ctx, logoutTime)
		spare.logout(leaving)
		cancel()
	}
	asked, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	err = one.ask(asked, ask)
	if ctx.Err() != nil {
		return ctx.Err() // nobody waits for the answer any more
	}
	return err
}

// errSlow is why a question ended that took too long.
var errSlow = errors.New("the vCenter took too long")

// session returns the session of an account, which may not be open yet, and the one that has to end for it; nil for none.
func (s *Service) session(account vcenter.Account) (one, spare *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, known := s.sessions[account]; known {
		one.lastUse.Store(s.now().UnixNano())
		return one, nil, nil
	}
	if len(s.sessions) >= maxSessions {
		if spare = s.longest(); spare == nil {
			return nil, nil, &vcenter.Error{Reason: vcenter.Crowded, Message: fmt.Sprintf("%d vCenter accounts are in use at once: let groups share the Secret vc-creds in the operator's namespace", maxSessions), After: time.Minute}
		}
		delete(s.sessions, spare.account)
	}
	one = newSession(account, s.now)
	one.lastUse.Store(s.now().UnixNano())
	s.sessions[account] = one
	return one, spare, nil
}

// longest is the session that nobody has used for longest; nil for none. One that is at work now is not meant, and neither is one whose
// vCenter is left in peace: who comes after would not know of that. s.mu is held.
func (s *Service) longest() *session {
	var found *session
	for _, one := range s.sessions {
		if len(one.requests) == 0 && one.resting() == nil && (found == nil || one.lastUse.Load() < found.lastUse.Load()) {
			found = one
		}
	}
	return found
}

// Tidy ends the sessions nobody has used for a while, every minute until ctx ends; then it ends all. Sessions that were left would count
// against the vCenter's limit for half an hour.
func (s *Service) Tidy(ctx context.Context) {
	every := time.NewTicker(time.Minute)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			s.end(context.WithoutCancel(ctx), s.now().Add(-idle))
		case <-ctx.Done():
			s.end(context.WithoutCancel(ctx), s.now().Add(time.Hour))
			return
		}
	}
}

// end ends the sessions that were not used since.
func (s *Service) end(ctx context.Context, since time.Time) {
	s.mu.Lock()
	ended := []*session{}
	for account, one := range s.sessions {
		if one.lastUse.Load() < since.UnixNano() {
			ended = append(ended, one)
			delete(s.sessions, account)
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, logoutTime)
	defer cancel()
	var all sync.WaitGroup
	for _, one := range ended {
		all.Go(func() { one.logout(ctx) })
	}
	all.Wait()
}
