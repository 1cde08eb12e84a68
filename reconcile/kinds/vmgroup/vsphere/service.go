//go:build !without_vcenter

// Package vsphere connects to vCenters through govmomi, for reconcile/kinds/vmgroup. It runs in a separate process
// (cmd/mysql-operator-vsphere): every process that links the library builds tables of some thousand types when it starts.
//
// Each account has one session, however many groups use it. The groups' regular calls keep it open. The service creates it again when the
// vCenter has forgotten it, and ends it after a time without calls. If a vCenter does not answer or refuses, the service pauses, and
// doubles the pause each time. Calls during a pause get the last error.
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
	// lookTime and doTime limit one call, including all its requests to the vCenter.
	lookTime = 25 * time.Second
	doTime   = 25 * time.Second
	// requestTime limits one request.
	requestTime = 15 * time.Second
	// maxRequests is how many calls use one account at the same time.
	maxRequests = 8
	// maxClones is how many machines are cloned at the same time with one account. vSphere copies eight at a time from or to a datastore
	// (vSphere documentation, "Limits on Simultaneous Migrations").
	maxClones = 4
	// maxSessions is how many accounts have a session at the same time, far more than one operator is meant for: each keeps a connection
	// open.
	maxSessions = 256
	// logoutTime limits the end of a session.
	logoutTime = 3 * time.Second
	// idle is the time without calls after which the service ends a session. A vCenter does so after 30 minutes.
	idle = 5 * time.Minute
)

// Service is a vcenter.API for any number of vCenters.
type Service struct {
	now func() time.Time

	mu       sync.Mutex
	sessions map[vcenter.Account]*session
}

// New returns a service. now is the clock.
func New(now func() time.Time) *Service {
	return &Service{now: now, sessions: map[vcenter.Account]*session{}}
}

// Look implements vcenter.API.
func (s *Service) Look(ctx context.Context, group vcenter.Group) (vcenter.Inventory, error) {
	found := vcenter.Inventory{}
	err := s.with(ctx, group.Account, lookTime, func(ctx context.Context, one openSession) error {
		var err error
		found, err = one.look(ctx, group)
		return err
	})
	return found, err
}

// Do implements vcenter.API.
func (s *Service) Do(ctx context.Context, order vcenter.Order) error {
	return s.with(ctx, order.Group.Account, doTime, func(ctx context.Context, one openSession) error {
		return one.do(ctx, order)
	})
}

// with makes a call within a session, with a time limit. If the vCenter has forgotten the session, the call logs in again, once.
func (s *Service) with(ctx context.Context, account vcenter.Account, limit time.Duration, ask func(context.Context, openSession) error) error {
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
		return ctx.Err() // the caller no longer waits for the answer
	}
	return err
}

// errSlow is the cause of the end of a call that took too long.
var errSlow = errors.New("the vCenter took too long")

// session returns the session of an account, which may not be open yet. spare is a session that must end for it; nil for none.
func (s *Service) session(account vcenter.Account) (one, spare *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, known := s.sessions[account]; known {
		one.lastUse.Store(s.now().UnixNano())
		return one, nil, nil
	}
	if len(s.sessions) >= maxSessions {
		if spare = s.longest(); spare == nil {
			return nil, nil, &vcenter.Error{Reason: vcenter.TooManyAccounts, Message: fmt.Sprintf("%d vCenter accounts are in use at once: let groups share the Secret vc-creds in the operator's namespace", maxSessions), After: time.Minute}
		}
		delete(s.sessions, spare.account)
	}
	one = newSession(account, s.now)
	one.lastUse.Store(s.now().UnixNano())
	s.sessions[account] = one
	return one, spare, nil
}

// longest returns the session that was unused for the longest time; nil for none. It leaves out sessions in use, and sessions in a pause: a
// later call with that account would not know of the pause. The caller holds s.mu.
func (s *Service) longest() *session {
	var found *session
	for _, one := range s.sessions {
		if len(one.requests) == 0 && one.backoffError() == nil && (found == nil || one.lastUse.Load() < found.lastUse.Load()) {
			found = one
		}
	}
	return found
}

// Tidy ends unused sessions every minute until ctx ends; then it ends all. Sessions that were left open would count against the vCenter's
// limit for half an hour.
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
