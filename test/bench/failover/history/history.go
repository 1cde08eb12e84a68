// Package history checks what clients did to registers of one number each: is there an order of all operations, each at a moment between
// its beginning and its end, in which every read returns what the last write before it wrote? Then the history is linearizable.
package history

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
	driver "github.com/go-sql-driver/mysql"
)

// Operation is one read or write of a client. Every write of a history has a value of its own. A register is 0 before its first write.
type Operation struct {
	Client   int  `json:"client"`
	Register int  `json:"register"`
	IsWrite  bool `json:"isWrite"`
	// Value is what was written or read. It is Absent if there was no such register.
	Value int64 `json:"value"`
	// Server is the member to which the client was connected; empty if it could not say. The check does not need it.
	Server string `json:"server,omitempty"`
	// Began and Ended count from one moment for all operations.
	Began time.Duration `json:"began"`
	Ended time.Duration `json:"ended"`
	// IsOpen is a write with an error that does not tell whether it took place. It may take place at any time after Began.
	IsOpen bool `json:"isOpen,omitempty"`
}

// Absent is the value of a register that does not exist.
const Absent = -1

// Verdict is the result for some registers.
type Verdict struct {
	// Violated are the registers with a history that is not linearizable, Unchecked those for which the time did not suffice.
	Violated, Unchecked []int
}

// Check checks each register by itself, all within the limit.
func Check(operations []Operation, limit time.Duration) Verdict {
	var verdict Verdict
	end := time.Now().Add(limit)
	byRegister := map[int][]Operation{}
	for _, one := range operations {
		byRegister[one.Register] = append(byRegister[one.Register], one)
	}
	for register, own := range byRegister {
		// A time limit of 0 would be none.
		switch porcupine.CheckOperationsTimeout(model(), converted(own), max(time.Until(end), time.Millisecond)) {
		case porcupine.Illegal:
			verdict.Violated = append(verdict.Violated, register)
		case porcupine.Unknown:
			verdict.Unchecked = append(verdict.Unchecked, register)
		case porcupine.Ok:
		}
	}
	slices.Sort(verdict.Violated)
	slices.Sort(verdict.Unchecked)
	return verdict
}

// Of returns the operations on some registers.
func Of(operations []Operation, registers []int) []Operation {
	return slices.DeleteFunc(slices.Clone(operations), func(one Operation) bool { return !slices.Contains(registers, one.Register) })
}

// input is what an operation does. A read has its value as the output.
type input struct {
	isWrite bool
	value   int64
}

// model is one register.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, in, out any) (bool, any) {
			if does, _ := in.(input); does.isWrite {
				return true, does.value
			}
			return state == out, state
		},
	}
}

// converted returns the operations of one register as the checker wants them. An open write ends after all others. If no client read its
// value, it is left out: it can be the last of all, and it would only multiply the orders that the checker tries.
func converted(operations []Operation) []porcupine.Operation {
	isRead := map[int64]bool{}
	for _, one := range operations {
		if !one.IsWrite {
			isRead[one.Value] = true
		}
	}
	list := make([]porcupine.Operation, 0, len(operations))
	for _, one := range operations {
		if one.IsOpen && !isRead[one.Value] {
			continue
		}
		end := int64(one.Ended)
		if one.IsOpen {
			end = math.MaxInt64
		}
		does := input{isWrite: one.IsWrite}
		if one.IsWrite {
			does.value = one.Value
		}
		list = append(list, porcupine.Operation{ClientId: one.Client, Input: does, Call: int64(one.Began), Output: one.Value, Return: end})
	}
	return list
}

// Unwritten returns the reads of values that no client had begun to write before the read ended. Such reads may be old, as those from
// replicas: a register that is absent counts as one without writes.
func Unwritten(reads, operations []Operation) []Operation {
	began := map[[2]int64]time.Duration{}
	for _, one := range operations {
		if one.IsWrite {
			began[[2]int64{int64(one.Register), one.Value}] = one.Began
		}
	}
	var found []Operation
	for _, one := range reads {
		since, isKnown := began[[2]int64{int64(one.Register), one.Value}]
		if one.Value != 0 && one.Value != Absent && (!isKnown || since > one.Ended) {
			found = append(found, one)
		}
	}
	return found
}

// Refused reports whether an error of a statement means that it did not take place: mysqld is read-only. All other errors leave it open.
func Refused(err error) bool {
	const optionPreventsStatement, readOnlyMode = 1290, 1836 // ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE
	var answer *driver.MySQLError
	return errors.As(err, &answer) && (answer.Number == optionPreventsStatement || answer.Number == readOnlyMode)
}
