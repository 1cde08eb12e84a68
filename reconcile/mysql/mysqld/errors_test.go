package mysqld

import (
	"errors"
	"fmt"
	"testing"

	driver "github.com/go-sql-driver/mysql"
)

func TestErrorsThatAreTold(t *testing.T) {
	t.Parallel()
	wrapped := func(number uint16, message string) error {
		return fmt.Errorf("clone db-0: %w", &driver.MySQLError{Number: number, Message: message})
	}
	tests := map[string]struct {
		err          error
		busy, denied bool
	}{
		"all is well":                          {nil, false, false},
		"the donor serves another clone":       {wrapped(errTooManyClones, "Too many concurrent clone operations"), true, false},
		"reported by the recipient":            {wrapped(errCloneDonor, "Clone Donor Error: 3634 : Too many concurrent clone operations. Maximum allowed - 1."), true, false},
		"the donor reports another error":      {wrapped(errCloneDonor, "Clone Donor Error: 1045 : Access denied"), false, false},
		"access denied":                        {wrapped(errAccessDenied, "Access denied for user"), false, true},
		"the same words without a MySQL error": {errors.New("Error 1045: Access denied"), false, false},
		"the connection broke during the copy": {driver.ErrInvalidConn, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := IsDonorBusy(test.err); got != test.busy {
				t.Errorf("donor busy: got %t, want %t", got, test.busy)
			}
			if got := IsAccessDenied(test.err); got != test.denied {
				t.Errorf("access denied: got %t, want %t", got, test.denied)
			}
		})
	}
}

func TestReceiversThatWaitForRoom(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{
		"Waiting for the replica SQL thread to free relay log space":      true,
		"Waiting for the slave SQL thread to free enough relay log space": true,
		"Waiting for source to send event":                                false,
		"Queueing source event to the relay log":                          false,
		"":                                                                false,
	} {
		if got := waitsForRoom(state); got != want {
			t.Errorf("%q: %t", state, got)
		}
	}
}

func TestSessionsThatHaveSentAll(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{
		"Source has sent all binlog to replica; waiting for more updates": true,
		"Master has sent all binlog to slave; waiting for more updates":   true,
		"Sending binlog event to replica":                                 false,
		"Finished reading one binlog; switching to next binlog":           false,
		"Waiting to finalize termination":                                 false,
		"":                                                                false,
	} {
		if got := sentAll(state); got != want {
			t.Errorf("%q: %t", state, got)
		}
	}
}
