package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// phase is how much of a transaction's events has been read.
type phase int

const (
	phaseBegins phase = iota // only the GTID, or variables for the statement that follows
	phaseEmpty               // only BEGIN
	phaseOpen                // BEGIN or XA START, so an end must come
	phaseEnded
)

// strictly returns the phase after an event of a transaction that recovery can roll back. It returns an error if the event makes it one
// that recovery cannot roll back, or that is not understood.
func (p phase) strictly(next event) (phase, error) {
	switch {
	case next.kind == kindQuery:
		return p.strictStatement(next)
	case p != phaseEmpty && p != phaseOpen:
	case next.changesRows():
		return phaseOpen, nil
	case next.kind == kindXID && (next.isTorn || next.size == numberSize):
		return phaseEnded, nil
	}
	return p, fmt.Errorf("an event of type %d is not expected here in a transaction that only changes rows", next.kind)
}

// strictStatement returns the phase after a statement: BEGIN, or the COMMIT of a transaction that changes nothing.
func (p phase) strictStatement(next event) (phase, error) {
	switch {
	case p == phaseBegins && (next.isTorn || next.isBegin()):
		return phaseEmpty, nil
	case p == phaseEmpty && !next.isTorn && next.statement() == "COMMIT":
		return phaseEnded, nil
	}
	return p, errors.New("the transaction has a statement other than BEGIN at its beginning")
}

// changesRows reports whether an event changes rows, or says which.
func (e event) changesRows() bool {
	switch e.kind { //nolint:exhaustive // the other kinds do not
	case kindRowsQuery, kindTableMap, kindWriteRows, kindUpdateRows, kindDeleteRows, kindPartialUpdate:
		return true
	}
	return false
}

// loosely returns the phase after an event of any transaction. It follows the recovery of mysqld, which finds the ends of transactions the
// same way (MySQL source, sql/binlog/log_sanitizer.cc).
func (p phase) loosely(next event) (phase, error) {
	switch p {
	case phaseBegins:
		return afterGTID(next)
	case phaseEmpty, phaseOpen:
		return inTransaction(next)
	case phaseEnded:
	}
	return p, fmt.Errorf("an event of type %d follows the end of the transaction", next.kind)
}

// afterGTID handles the first events of a transaction. DDL is a single statement. So are XA COMMIT and XA ROLLBACK.
func afterGTID(next event) (phase, error) {
	switch next.kind { //nolint:exhaustive // no other kind is allowed
	case kindIntvar, kindRand, kindUserVar:
		return phaseBegins, nil
	case kindPayload:
		return phaseEnded, nil
	case kindQuery:
		if next.isTorn || next.isBegin() || strings.HasPrefix(next.statement(), "XA START") {
			return phaseOpen, nil
		}
		return phaseEnded, nil
	}
	return phaseBegins, fmt.Errorf("a transaction does not begin with an event of type %d", next.kind)
}

// inTransaction handles the events behind BEGIN or XA START.
func inTransaction(next event) (phase, error) {
	switch next.kind { //nolint:exhaustive // the other kinds change nothing
	case kindXID, kindXAPrepare:
		return phaseEnded, nil
	case kindQuery:
		if statement := next.statement(); statement == "COMMIT" || statement == "ROLLBACK" {
			return phaseEnded, nil
		}
	case kindFormat, kindPrevious:
		return phaseOpen, fmt.Errorf("an event of type %d is in a transaction", next.kind)
	}
	return phaseOpen, nil
}

// queryFixed is the size of the fixed part of a statement's event: thread 4, duration 4, length of the database's name 1, error 2, length
// of the variables 2. Variables, the name with a zero byte and the statement follow (MySQL source,
// libs/mysql/binlog/event/statement_events.h, Query_event).
const queryFixed = 13

// longest is how much of a statement is returned: more than any that is recognised.
const longest = 16

// statement returns the beginning of a statement. It returns "" if the event has none.
func (e event) statement() string {
	if len(e.body) < queryFixed {
		return ""
	}
	from := queryFixed + int64(binary.LittleEndian.Uint16(e.body[11:])) + int64(e.body[8]) + 1
	if from > int64(len(e.body)) {
		return ""
	}
	return string(e.body[from:min(int64(len(e.body)), from+longest)])
}

// isBegin reports whether a statement is exactly BEGIN.
func (e event) isBegin() bool { return e.statement() == "BEGIN" }

// parseGTID parses the GTID that begins a transaction: flags 1, UUID 16, number 8 (MySQL source,
// libs/mysql/binlog/event/control_events.h, Gtid_event).
func parseGTID(e event) (gtid, error) {
	rest := bytesLeft{e.body}
	_ = rest.take(1)
	var found gtid
	copy(found.server[:], rest.take(uuidSize))
	number, ok := rest.number()
	if !ok {
		return gtid{}, fmt.Errorf("GTID at position %d: its content has only %d bytes", e.from, e.size)
	}
	found.number = int64(number) //nolint:gosec // checked below
	if found.number < 1 || found.number+1 < 1 {
		return gtid{}, fmt.Errorf("GTID at position %d: %d is no number of a transaction", e.from, number)
	}
	return found, nil
}
