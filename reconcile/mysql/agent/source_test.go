package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

// TestAMemberThatMayLoseWhatItReceivedIsNoWitness: its volume says so before the source changes, and until it is certain that nothing is
// lost.
func TestAMemberThatMayLoseWhatItReceivedIsNoWitness(t *testing.T) {
	t.Parallel()
	refused := errors.New("the applier does not run")
	lost := &mysqld.ReceivedLostError{Source: "10.0.0.2", Cause: context.DeadlineExceeded}
	tests := map[string]struct {
		was, changes bool
		err          error
		want         bool
	}{
		"it has all that it had received":            {changes: true},
		"it did not change the source":               {err: refused},
		"it has all, and does not receive yet":       {changes: true, err: refused},
		"the relay log is gone, or nothing is known": {changes: true, err: lost, want: true},
		"it was none before":                         {was: true, changes: true, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := memberState()
			kept.IsForgetful = test.was
			member := newAgent(t, newLayout(t), kept)
			write(t, member.layout.account(mysqld.ReplicationUsers), "a password")
			told := assignment(member, 1, "db-0")
			err := member.turnToSource(t.Context(), told, func(_ context.Context, source mysqld.Source, atRisk func() error) error {
				if source.Host != told.SourceAddress || source.Port != told.SourcePort {
					t.Errorf("the source is %s:%d", source.Host, source.Port)
				}
				if !test.changes {
					return test.err
				}
				if err := atRisk(); err != nil || !stateOf(t, member.layout).IsForgetful {
					t.Errorf("the source changes, and the volume does not say that the member may lose what it received: %v", err)
				}
				return test.err
			})
			if !errors.Is(err, test.err) {
				t.Errorf("the error is %v, want %v", err, test.err)
			}
			if volume, report := stateOf(t, member.layout).IsForgetful, member.Status().IsForgetful; volume != test.want || report != test.want {
				t.Errorf("forgetful: %t on the volume, %t in the report, want %t", volume, report, test.want)
			}
		})
	}
}

// TestACopyHasTheAddressThatTheAgentLookedAt: CLONE takes no IPv6 address.
func TestACopyHasTheAddressThatTheAgentLookedAt(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"10.0.0.1": "10.0.0.1", "fd00::1": "db-0.pods", "": "db-0.pods"} {
		if got := donorHost("db-0.pods", address); got != want {
			t.Errorf("%q: the donor is %s, want %s", address, got, want)
		}
	}
}
