package replication

// MySQL may stop waiting for acknowledgements by itself: for lack of memory, after a time-out, or because a user changes its settings. It
// may wait again before its agent looks the next time. A commit that returned meanwhile may be on the primary alone, although its client
// was told that it had succeeded. So such transactions are in doubt: the agent drops none of which it knows, and a person decides
// (errantStep).

// AcksLook is what one look at a mysqld shows of the acknowledgements that its commits wait for.
type AcksLook struct {
	// Start is the start of mysqld. IsOpen reports whether anybody could write.
	Start  string
	IsOpen bool
	// Enforced is how many acknowledgements commits certainly waited for, and SwitchedOff how often MySQL had stopped waiting for them since
	// its start. FLUSH STATUS makes it begin at 0 again.
	Enforced    int
	SwitchedOff int64
	// Made are the transactions that this server has made, Pending those in progress. Both are read after the numbers above.
	Made, Pending GTIDSet
}

// AcksWatch compares each look with the one before. The zero value has seen none.
type AcksWatch struct {
	last AcksLook
	// promised is how many copies the record promised at that look, and before is what the server had made at the look before that.
	promised int
	before   GTIDSet
}

// Look returns the watch after another look, and the transactions that are in doubt since the last one. order is the last assignment that
// the agent had accepted before the look. An agent that lowers the number itself does that under an assignment which promises no more.
//
// MySQL may have stopped waiting between the two parts of the last look. So the transactions are those since the look before that.
func (w AcksWatch) Look(now AcksLook, order *Assignment) (next AcksWatch, inDoubt GTIDSet) {
	next = AcksWatch{last: now, before: now.Made}
	isSame := w.last.Start == now.Start
	if isSame {
		next.promised, next.before = w.promised, w.last.Made
	}
	if order != nil && order.Role == RolePrimary {
		next.promised = order.Record.RequiredAcks
	}
	if !isSame || w.isKept(next) {
		return next, GTIDSet{}
	}
	return next, now.Made.Union(now.Pending).Subtract(w.before)
}

// isKept reports whether all commits between two looks have waited for as many replicas as the record promised.
func (w AcksWatch) isKept(next AcksWatch) bool {
	before, now := w.last, next.last
	switch {
	case !before.IsOpen && !now.IsOpen:
		return true // the agent may let commits end whose clients have gone
	case next.promised > 0 && now.SwitchedOff > 0 && now.SwitchedOff != before.SwitchedOff:
		return false
	}
	return min(before.Enforced, now.Enforced) >= min(w.promised, next.promised)
}
