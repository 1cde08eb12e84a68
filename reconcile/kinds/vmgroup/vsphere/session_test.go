//go:build !race && !without_vcenter

package vsphere

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/test/vcsim"
)

// TestPlacesOutliveSessions: a site that was found is used with every later session.
func TestPlacesOutliveSessions(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, first, second := New(time.Now), groupNamed(v, "a", "a"), groupNamed(v, "b", "b")
	first.Place = vcenter.Place{Datacenter: "DC0", ResourcePool: "DC0_C0/Resources", Datastore: "LocalDS_0"}
	second.Place = first.Place
	_, err := service.Look(t.Context(), first)
	must(t, err)
	v.ForgetSessions()
	must(t, service.Do(t.Context(), vcenter.Order{Group: second, Verb: vcenter.CreateFolder}))
	must(t, service.Do(t.Context(), clone(second, "b-0")))
	until(t, service, second, "the machine", rests(1))
	if open := len(v.Sessions()); open != 1 {
		t.Errorf("%d sessions, want 1", open)
	}
}

// TestASessionIsSharedAndRenewed: many groups use one session. The service creates it again when the vCenter has forgotten it, and ends it
// when it is unused.
func TestASessionIsSharedAndRenewed(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service := New(watch.now)
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all.Go(func() {
			if _, err := service.Look(t.Context(), groupNamed(v, name, name)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if count := v.Calls("Login"); count != 1 {
		t.Errorf("%d logins of six groups at once, want 1", count)
	}
	for round := 2; round < 5; round++ {
		if ended := v.ForgetSessions(); ended != 1 {
			t.Fatalf("%d sessions, want 1", ended)
		}
		_, err := service.Look(t.Context(), groupOf(v))
		must(t, err)
		if count := v.Calls("Login"); count != round {
			t.Errorf("%d logins, want %d", count, round)
		}
	}
	service.end(t.Context(), watch.now().Add(-idle))
	if len(v.Sessions()) != 1 {
		t.Error("a session that is used was ended")
	}
	watch.forward(idle + time.Second)
	service.end(t.Context(), watch.now().Add(-idle))
	if left := v.Sessions(); len(left) != 0 {
		t.Errorf("%d sessions are left", len(left))
	}
}

// TestAVCenterThatIsDownIsLeftInPeace: a call during the pause gets the last error, and the vCenter gets no request.
func TestAVCenterThatIsDownIsLeftInPeace(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	_, err := service.Look(t.Context(), group)
	must(t, err)
	v.Down()
	pauses := []time.Duration{}
	for range 8 {
		_, err := service.Look(t.Context(), group)
		known := refusal(t, err, vcenter.Unreachable, "cannot be reached")
		pauses = append(pauses, known.After)
		_, err = service.Look(t.Context(), groupNamed(v, "other", "uid-2"))
		if soon := refusal(t, err, vcenter.Unreachable, known.Message); soon.After > known.After {
			t.Errorf("asked early, the pause became longer: %s after %s", soon.After, known.After)
		}
		watch.forward(known.After + time.Second)
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	v.Up()
	_, err = service.Look(t.Context(), group)
	must(t, err)
	v.Down()
	_, err = service.Look(t.Context(), group)
	if known := refusal(t, err, vcenter.Unreachable, ""); known.After != pauseFirst {
		t.Errorf("after it was up the first pause is %s", known.After)
	}
}

// TestASessionOutlivesAnOutage: when the vCenter is back, it still knows the session.
func TestASessionOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	for range 3 {
		_, err := service.Look(t.Context(), group)
		must(t, err)
		v.Down()
		_, err = service.Look(t.Context(), group)
		wantReason(t, err, vcenter.Unreachable, "")
		v.Up()
		watch.forward(pauseCap)
	}
	if logins, open := v.Calls("Login"), len(v.Sessions()); logins != 1 || open != 1 {
		t.Errorf("%d logins and %d sessions, want one", logins, open)
	}
}

// TestAWrongPasswordIsNotTriedOften: a vCenter locks accounts.
func TestAWrongPasswordIsNotTriedOften(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	group.Account.Password = "wrong"
	for range 20 {
		_, err := service.Look(t.Context(), group)
		wantReason(t, err, vcenter.LoginRefused, "VC_PASS")
		watch.forward(9 * time.Second)
	}
	before := v.Calls("Login")
	if before > 3 {
		t.Errorf("%d tries in three minutes", before)
	}
	_, err := service.Look(t.Context(), groupOf(v))
	must(t, err) // the correct password does not wait for the wrong one
}

// TestAWrongPasswordIsKnownToWhoWaits: a call that waited to open the session gets the error that the vCenter refuses the account.
func TestAWrongPasswordIsKnownToWhoWaits(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	account := groupOf(v).Account
	account.Password = "wrong"
	one := newSession(account, time.Now)
	for range 5 {
		_, err := one.open(t.Context())
		if known := refusal(t, err, vcenter.LoginRefused, "VC_PASS"); known.After == 0 {
			t.Error("it may be retried immediately")
		}
	}
	if tries := v.Calls("Login"); tries != 1 {
		t.Errorf("%d tries at once", tries)
	}
}

// TestALoginThatFails: after any error of a login there is a pause. An account that the vCenter refuses is reported for a user to correct.
func TestALoginThatFails(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		fault  types.BaseMethodFault
		reason vcenter.Reason
		words  string
		pause  time.Duration
	}{
		"no permission":        {&types.NoPermission{PrivilegeId: "System.View"}, vcenter.LoginRefused, "System.View", pauseRefusedFirst},
		"the password is old":  {&types.PasswordExpired{}, vcenter.LoginRefused, "has expired", pauseRefusedFirst},
		"the password is none": {&types.InvalidLogin{}, vcenter.LoginRefused, "VC_PASS", pauseRefusedFirst},
		"it is starting":       {&types.HostNotReachable{}, vcenter.Unreachable, "HostNotReachable", pauseFirst},
		"it is overloaded":     {&types.RuntimeFault{}, vcenter.Unreachable, "RuntimeFault", pauseFirst},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			v, watch := vcsim.New(t), &clock{}
			service, group := New(watch.now), groupOf(v)
			v.Fail(func(method string) types.BaseMethodFault {
				if method == "Login" {
					return test.fault
				}
				return nil
			})
			_, err := service.Look(t.Context(), group)
			if known := refusal(t, err, test.reason, test.words); known.After != test.pause {
				t.Errorf("the pause is %s, want %s", known.After, test.pause)
			}
			for range 5 {
				_, err = service.Look(t.Context(), group)
				wantReason(t, err, test.reason, test.words)
			}
			if tries := v.Calls("Login"); tries != 1 {
				t.Errorf("%d tries at once", tries)
			}
		})
	}
}

// TestAPasswordInTheHostIsNotPrinted: status and events contain messages.
func TestAPasswordInTheHostIsNotPrinted(t *testing.T) {
	t.Parallel()
	for host, words := range map[string]string{
		"https://admin:secret@vc.example.com/sdk": "VC_USER and VC_PASS",
		"admin:secret@vc.example.com":             "VC_USER and VC_PASS",
		"https://admin:sec%ret@vc.example.com":    "VC_USER and VC_PASS",
		"http://vc.example.com":                   `"http://vc.example.com"`,
		"https://":                                `"https://"`,
	} {
		group := vcenter.Group{Account: vcenter.Account{Host: host, User: "u", Password: "p"}}
		_, err := New(time.Now).Look(t.Context(), group)
		known := refusal(t, err, vcenter.Unreachable, words)
		if said := known.Message + group.Account.String(); strings.Contains(said, "sec") {
			t.Errorf("it says %q", said)
		}
	}
}

func TestACertificateIsChecked(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	group := groupOf(v)
	group.Account.Authorities = ""
	_, err := New(time.Now).Look(t.Context(), group)
	wantReason(t, err, vcenter.Untrusted, "VC_CA")
	if v.Calls("Login") != 0 {
		t.Error("the password was sent to a server that is not trusted")
	}
	group.Account.Authorities = "nonsense"
	_, err = New(time.Now).Look(t.Context(), group)
	wantReason(t, err, vcenter.Untrusted, "no certificate in PEM")
	group.Account.Authorities, group.Account.Insecure = "", true
	_, err = New(time.Now).Look(t.Context(), group)
	must(t, err)
}

// TestAVCenterThatIsSlow: no call waits indefinitely, and a caller that stops waiting does not count as a failure of the vCenter.
func TestAVCenterThatIsSlow(t *testing.T) {
	t.Parallel()
	v := vcsim.New(t)
	service, group := New(time.Now), groupOf(v)
	_, err := service.Look(t.Context(), group)
	must(t, err)
	v.Slow(time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := service.Look(ctx, group); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the end of the caller's time", err)
	}
	one, _, err := service.session(group.Account)
	must(t, err)
	slow, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errSlow)
	defer cancel()
	err = one.ask(slow, func(ctx context.Context, s openSession) error {
		_, err := s.look(ctx, group)
		return err
	})
	if known := refusal(t, err, vcenter.Unreachable, "does not answer in time"); known.After == 0 {
		t.Error("there is no pause")
	}
}

// TestAccountsThatAreManyTakeTurns: a new account gets the place of the session that was unused for the longest time. Sessions that are in
// use or in a pause stay.
func TestAccountsThatAreManyTakeTurns(t *testing.T) {
	t.Parallel()
	v, watch := vcsim.New(t), &clock{}
	service, group := New(watch.now), groupOf(v)
	_, err := service.Look(t.Context(), group)
	must(t, err)
	others := []*session{}
	for number := range maxSessions - 1 {
		watch.forward(time.Second)
		one, spare, err := service.session(vcenter.Account{User: strings.Repeat("u", number+1)})
		must(t, err)
		if spare != nil {
			t.Fatalf("a session ends for account %d", number)
		}
		others = append(others, one)
	}
	_, err = service.Look(t.Context(), vcenter.Group{Account: vcenter.Account{Host: "https://"}})
	wantReason(t, err, vcenter.Unreachable, "VC_HOST")
	if open := len(v.Sessions()); open != 0 {
		t.Errorf("the session that was unused longest is open still, and %d are", open)
	}
	others[0].requests <- struct{}{}
	others[1].last, others[1].until = &vcenter.Error{Reason: vcenter.LoginRefused}, watch.now().Add(time.Minute)
	if _, spare, err := service.session(group.Account); err != nil || spare != others[2] {
		t.Errorf("the session of another account ended, error %v", err)
	}
	for _, one := range service.sessions {
		one.last, one.until = &vcenter.Error{Reason: vcenter.LoginRefused}, watch.now().Add(time.Minute)
	}
	_, err = service.Look(t.Context(), vcenter.Group{Account: vcenter.Account{User: "one too many"}})
	wantReason(t, err, vcenter.TooManyAccounts, "let groups share")
}
