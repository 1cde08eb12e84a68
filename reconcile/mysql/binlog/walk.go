package binlog

import "fmt"

// walk is what is known of the transactions of a file up to an event.
type walk struct {
	// has is the given set, executed the previous GTIDs and the complete transactions so far, tail those of the tail, empty those of them that
	// change nothing.
	has, executed, tail, empty numbers
	// from is where the tail begins. hasTail reports whether there is one so far.
	from    int64
	hasTail bool
	// current is the last transaction that has begun, nil before the first.
	current *group
}

// group is a transaction of the file.
type group struct {
	gtid  gtid
	from  int64
	phase phase
	// isEmpty reports whether it has ended, and changes nothing. That is known only in the tail.
	isEmpty bool
}

// take handles a complete event.
func (w *walk) take(next event) error {
	if next.kind != kindGTID {
		return w.step(next)
	}
	if err := w.finish(); err != nil {
		return fmt.Errorf("%w, but another transaction begins at position %d", err, next.from)
	}
	found, err := parseGTID(next)
	if err != nil {
		return err
	}
	isMissing := !w.has.has(found)
	switch {
	case w.executed.has(found):
		return fmt.Errorf("the transaction %s at position %d is in the logs twice", found, next.from)
	case !isMissing && w.hasTail:
		return fmt.Errorf("the transaction %s at position %d is not missing, but one before it, at position %d, is", found, next.from, w.from)
	case isMissing:
		w.begin(next.from)
	}
	w.current = &group{gtid: found, from: next.from}
	return nil
}

// begin notes that the file is missing from a position on, if it is not already missing from an earlier one on.
func (w *walk) begin(from int64) {
	if !w.hasTail {
		w.hasTail, w.from = true, from
	}
}

// step handles an event other than a GTID.
func (w *walk) step(next event) (err error) {
	if w.current == nil {
		return fmt.Errorf("the event of type %d at position %d is in no transaction", next.kind, next.from)
	}
	if w.hasTail {
		before := w.current.phase
		w.current.phase, err = before.strictly(next)
		w.current.isEmpty = before == phaseEmpty && w.current.phase == phaseEnded
	} else {
		w.current.phase, err = w.current.phase.loosely(next)
	}
	if err != nil {
		return fmt.Errorf("event at position %d in the transaction %s: %w", next.from, w.current.gtid, err)
	}
	return nil
}

// finish counts the current transaction. It returns an error if it has not ended.
func (w *walk) finish() error {
	if w.current == nil {
		return nil
	}
	if w.current.phase != phaseEnded {
		return fmt.Errorf("the transaction %s at position %d is not complete", w.current.gtid, w.current.from)
	}
	w.executed.add(w.current.gtid)
	if w.hasTail {
		w.tail.add(w.current.gtid)
		if w.current.isEmpty {
			w.empty.add(w.current.gtid)
		}
	}
	w.current = nil
	return nil
}

// end handles the end of the file. torn is the torn event at the end, nil if there is none.
func (w *walk) end(torn *event) error {
	if torn != nil {
		if err := w.rest(*torn); err != nil {
			return err
		}
	}
	if w.current == nil {
		return nil
	}
	if torn == nil && w.current.phase == phaseEnded {
		return w.finish()
	}
	if !w.hasTail { // it is not in the tail, so it is not missing
		return fmt.Errorf("the transaction %s at position %d is not complete, but another server has it", w.current.gtid, w.current.from)
	}
	return nil
}

// rest handles a torn event. If it does not continue the current transaction, it begins one, whose GTID is not known. Nothing is known of
// an event without a header, so it fits both.
func (w *walk) rest(torn event) error {
	isBegin := torn.kind == kindGTID || torn.hasNoHeader && (w.current == nil || w.current.phase == phaseEnded)
	if !isBegin {
		if torn.hasNoHeader {
			return nil
		}
		return w.step(torn)
	}
	if err := w.finish(); err != nil {
		return fmt.Errorf("%w, but another transaction begins at position %d", err, torn.from)
	}
	w.begin(torn.from)
	return nil
}
