package history

import (
	"errors"
	"fmt"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
)

// write and read are operations on register 7, in milliseconds.
func write(client int, value int64, began, ended int) Operation {
	return Operation{Client: client, Register: 7, IsWrite: true, Value: value, Began: milliseconds(began), Ended: milliseconds(ended)}
}

func read(client int, value int64, began, ended int) Operation {
	return Operation{Client: client, Register: 7, Value: value, Began: milliseconds(began), Ended: milliseconds(ended)}
}

// unknown is a write whose client got an error.
func unknown(client int, value int64, began, ended int) Operation {
	one := write(client, value, began, ended)
	one.IsOpen = true
	return one
}

func milliseconds(count int) time.Duration { return time.Duration(count) * time.Millisecond }

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		operations []Operation
		isViolated bool
	}{
		"nothing was done": {nil, false},
		"a client reads what it wrote": {
			[]Operation{read(1, 0, 0, 1), write(1, 11, 2, 3), read(1, 11, 4, 5)}, false},
		"a former primary serves what was there before an acknowledged write": {
			[]Operation{write(1, 11, 0, 10), write(1, 12, 20, 30), read(2, 11, 31, 40)}, true},
		"the same read began before the acknowledgement": {
			[]Operation{write(1, 11, 0, 10), write(1, 12, 20, 30), read(2, 11, 29, 40)}, false},
		"an acknowledged write is lost": {
			[]Operation{write(1, 11, 0, 10), write(1, 12, 20, 30), read(1, 12, 31, 32), read(1, 11, 33, 34)}, true},
		"a register is lost": {
			[]Operation{write(1, 11, 0, 10), read(1, Absent, 20, 30)}, true},
		"two clients see two writes in different orders": {
			[]Operation{write(1, 11, 0, 90), write(2, 12, 0, 90), read(3, 11, 10, 20), read(3, 12, 21, 30), read(4, 12, 10, 20), read(4, 11, 31, 40)}, true},
		"a write whose answer got lost took place": {
			[]Operation{write(1, 11, 0, 10), unknown(1, 12, 20, 1020), read(2, 12, 2000, 2001)}, false},
		"it did not take place": {
			[]Operation{write(1, 11, 0, 10), unknown(1, 12, 20, 1020), read(2, 11, 2000, 2001)}, false},
		"it takes place long after its client gave up": {
			[]Operation{write(1, 11, 0, 10), unknown(1, 12, 20, 1020), read(2, 11, 2000, 2001), read(2, 12, 9000, 9001)}, false},
		"it takes place, and is undone": {
			[]Operation{write(1, 11, 0, 10), unknown(1, 12, 20, 1020), read(2, 12, 2000, 2001), read(2, 11, 3000, 3001)}, true},
		"it takes place twice": {
			[]Operation{unknown(1, 12, 20, 1020), read(2, 12, 2000, 2001), write(2, 13, 3000, 3001), read(2, 13, 3002, 3003), read(2, 12, 4000, 4001)}, true},
		"a value is read before its write began": {
			[]Operation{read(2, 11, 0, 10), write(1, 11, 11, 20)}, true},
		"a value is read that no client wrote": {
			[]Operation{write(1, 11, 0, 10), read(2, 99, 11, 20)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Another register has a correct history.
			other := Operation{Client: 9, Register: 8, IsWrite: true, Value: 99, Ended: milliseconds(1)}
			var want Verdict
			if story.isViolated {
				want.Violated = []int{7}
			}
			if diff := cmp.Diff(want, Check(append(story.operations, other), time.Minute)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An outage leaves many writes open. Orders of those that no client read must not multiply.
func TestCheckIsFastAfterAnOutage(t *testing.T) {
	t.Parallel()
	var operations []Operation
	for i := range 1000 {
		at := 10 * i
		operations = append(operations, write(1, int64(10_000+i), at, at+5), read(2, int64(10_000+i), at+6, at+8))
		if i%10 == 0 {
			operations = append(operations, unknown(3, int64(50_000+i), at, at+9))
		}
	}
	if got := Check(operations, time.Minute); len(got.Violated)+len(got.Unchecked) > 0 {
		t.Errorf("got %+v, want no violation", got)
	}
	operations = append(operations, read(2, 10_500, 20_000, 20_001))
	if got := Check(operations, time.Minute); len(got.Violated) != 1 {
		t.Errorf("got %+v, want a violation: the last read is old", got)
	}
}

func TestCheckThatGetsNoTime(t *testing.T) {
	t.Parallel()
	var operations []Operation
	for client := range 60 { // all at once, and all are read: too many orders
		operations = append(operations, write(client, int64(client+1), 0, 100), read(100+client, int64(60-client), 0, 100))
	}
	operations = append(operations, read(1, 99, 101, 102))
	if diff := cmp.Diff(Verdict{Unchecked: []int{7}}, Check(operations, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestUnwritten(t *testing.T) {
	t.Parallel()
	operations := []Operation{write(1, 11, 10, 20), unknown(2, 12, 30, 40)}
	for name, story := range map[string]struct {
		one  Operation
		isOf bool
	}{
		"a replica that is behind":                     {read(3, 0, 100, 101), false},
		"a replica without the register so far":        {read(3, Absent, 100, 101), false},
		"an old value":                                 {read(3, 11, 100, 101), false},
		"a value whose client got an error":            {read(3, 12, 100, 101), false},
		"a replica ahead of the acknowledgement":       {read(3, 11, 12, 13), false},
		"a value from nowhere":                         {read(3, 13, 100, 101), true},
		"a value before its write began":               {read(3, 12, 20, 29), true},
		"a value that was written to another register": {Operation{Register: 8, Value: 11, Began: milliseconds(100), Ended: milliseconds(101)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := len(Unwritten([]Operation{story.one}, operations)) == 1; got != story.isOf {
				t.Errorf("got %t, want %t", got, story.isOf)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		err  error
		want bool
	}{
		"read-only":            {fmt.Errorf("write: %w", &driver.MySQLError{Number: 1290}), true},
		"the server ends":      {&driver.MySQLError{Number: 1053}, false},
		"the connection broke": {driver.ErrInvalidConn, false},
		"no answer":            {errors.New("i/o timeout"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Refused(story.err); got != story.want {
				t.Errorf("got %t, want %t", got, story.want)
			}
		})
	}
}
