package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// HollowJudge judges whether transactions are hollow. It reads a mysqld's own binary log by SQL, so that MySQL's own parser reads it. It
// remembers what it has judged and how far it has read, for one start of mysqld. The zero value is empty. Only one goroutine at a time may
// use it.
type HollowJudge struct {
	// of are the UUIDs of the servers whose transactions the logbook records while it reads.
	of map[string]bool
	// hollow and others are the judged transactions. The first judgement is final.
	hollow, others replication.GTIDSet
	// executed is gtid_executed at the last call of Hollow. The log may have later transactions.
	executed replication.GTIDSet
	// files records how far each file was read, previous the transactions that were logged before each file began.
	files    map[string]readPosition
	previous map[string]replication.GTIDSet
	// answers counts the answers of mysqld.
	answers int
	// mark is where the log ended at the last call of Mark, since where it ended at the call before. At such a call the caller has nothing
	// to judge, so all that had been logged at the earlier mark was known.
	mark, since BinaryLog
}

// readPosition records how far a file was read. Reading of a file stops for good at an event that is too large, or if it makes no progress
// (tooMuch): later transactions in it are not judged. wasLost reports whether the file is read again from its beginning, because mysqld
// found no event at the position.
type readPosition struct {
	next             int64
	tooMuch, wasLost bool
}

// advance advances to the end of a page. isLast reports whether the page ends at the current end of the log.
func (r readPosition) advance(next int64, isLast bool) readPosition {
	r.tooMuch = r.tooMuch || next <= r.next && !isLast
	r.next = max(r.next, next)
	return r
}

// lost starts the file again, once.
func (r readPosition) lost() readPosition { return readPosition{wasLost: true, tooMuch: r.wasLost} }

const (
	// pagesALook limits how many pages one look reads, in addition to its time limit. filesALook limits how many files it goes back. A page
	// has mostEvents, or fewer where events are large.
	pagesALook  = 256
	filesALook  = 64
	mostEvents  = 2000
	leastEvents = 8
	// pageBytes is the largest answer to one statement, in bytes. An event repeats a statement, which may have a gigabyte, and the driver
	// holds all of it in memory.
	pageBytes = 4 << 20
	// logHeader is the position of the first event of a file.
	logHeader = 4
)

// Hollow returns the transactions of executed that were judged hollow. gtid_executed only grows: if it did not, a user reset it or replaced
// the data, and the logbook starts again.
func (l *HollowJudge) Hollow(executed replication.GTIDSet) replication.GTIDSet {
	if !executed.Contains(l.executed) {
		*l = HollowJudge{}
	}
	l.executed = executed
	return l.hollow.Both(executed)
}

// Answers counts the answers of mysqld. If the number does not change, mysqld hangs.
func (l *HollowJudge) Answers() int { return l.answers }

// Mark records the end of the log while there is nothing to judge. Judge later starts at the mark before the last one, because a file may
// have a gigabyte. A transaction can be in the log before it counts as executed, so a mark becomes valid at the next call.
func (l *HollowJudge) Mark(ctx context.Context, server *Server) error {
	files, err := server.BinaryLogs(ctx)
	if err != nil || len(files) == 0 {
		return err
	}
	l.since, l.mark = l.mark, files[len(files)-1]
	l.answers++
	return nil
}

// Judge looks for the wanted transactions that are not yet judged, newest file first. It returns when it has found all, has read its limit
// of pages, or the context ends. Another call continues.
func (l *HollowJudge) Judge(ctx context.Context, server *Server, wanted, executed replication.GTIDSet) error {
	l.noteServers(wanted)
	missing := l.unjudged(wanted)
	if missing.Empty() {
		return nil
	}
	files, err := server.BinaryLogs(ctx)
	if err != nil {
		return err
	}
	l.keepUp(files, wanted)
	pages := pagesALook
	for visited := 0; visited < min(len(files), filesALook); visited++ {
		file := files[len(files)-1-visited].Name
		previous, err := l.previousGTIDs(ctx, server, file)
		if err != nil {
			return err
		}
		if !previous.Contains(missing) {
			if pages, err = l.readFile(ctx, server, file, executed, pages); err != nil {
				return err
			}
		}
		if pages == 0 {
			return nil // there may be more in this file
		}
		if file == l.since.Name && !previous.Contains(l.unjudged(missing)) {
			delete(l.files, file)
			l.since = BinaryLog{}
			visited--
			continue
		}
		if missing = l.unjudged(missing.Both(previous)); missing.Empty() {
			break
		}
	}
	// Transactions that are purged, too far back or not found count as not hollow.
	l.others = l.others.Union(l.unjudged(wanted))
	return nil
}

func (l *HollowJudge) unjudged(wanted replication.GTIDSet) replication.GTIDSet {
	return wanted.Subtract(l.hollow).Subtract(l.others)
}

// noteServers makes the logbook record the transactions of all servers in wanted. For a new server it reads all files again.
func (l *HollowJudge) noteServers(wanted replication.GTIDSet) {
	if l.of == nil {
		l.of, l.files, l.previous = map[string]bool{}, map[string]readPosition{}, map[string]replication.GTIDSet{}
	}
	for _, uuid := range wanted.Servers() {
		if !l.of[uuid] {
			l.of[uuid], l.files = true, map[string]readPosition{}
		}
	}
}

// keepUp forgets the files that are gone. If the log was reset, it forgets everything.
func (l *HollowJudge) keepUp(files []BinaryLog, wanted replication.GTIDSet) {
	if l.hasShrunk(files) {
		*l = HollowJudge{executed: l.executed}
		l.noteServers(wanted)
	}
	isThere := map[string]bool{}
	for _, file := range files {
		isThere[file.Name] = true
	}
	maps.DeleteFunc(l.files, func(name string, _ readPosition) bool { return !isThere[name] })
	maps.DeleteFunc(l.previous, func(name string, _ replication.GTIDSet) bool { return !isThere[name] })
}

// hasShrunk reports whether a file is shorter than the part of it that was read: RESET BINARY LOGS AND GTIDS starts with the same file
// names.
func (l *HollowJudge) hasShrunk(files []BinaryLog) bool {
	for _, file := range files {
		isMarked := file.Name == l.since.Name && file.Size < l.since.Size
		if isMarked || file.Size < l.files[file.Name].next {
			return true
		}
	}
	return false
}

// readFile continues to read a file to its end, or at most pages pages. It returns how many pages are left.
func (l *HollowJudge) readFile(ctx context.Context, server *Server, file string, executed replication.GTIDSet, pages int) (left int, err error) {
	at, events := l.files[file], mostEvents
	at.next = max(at.next, logHeader)
	if file == l.since.Name {
		at.next = max(at.next, l.since.Size)
	}
	for ; pages > 0 && !at.tooMuch; pages-- {
		found, err := server.binlogEvents(ctx, file, at.next, events)
		switch {
		case errors.Is(err, errTooMuch) && events > leastEvents:
			events = max(leastEvents, events/16)
			continue
		case errors.Is(err, errTooMuch):
			at.tooMuch = true
			l.files[file] = at
			return pages, fmt.Errorf("read %s from position %d: %w; later transactions in this file are not judged", file, at.next, err)
		case hasNumber(err, errNoSuchEvent):
			l.files[file] = at.lost()
			l.since = BinaryLog{}
			return pages, err
		case err != nil:
			return pages, err
		}
		isLast := len(found) < events
		read := pageOf(found, isLast, l.of, executed)
		if err := l.note(ctx, server, read.groups); err != nil {
			return pages, err
		}
		l.answers++
		at = at.advance(read.next, isLast)
		l.files[file] = at
		if isLast {
			return pages - 1, nil
		}
		events = min(mostEvents, events*2)
	}
	return pages, nil
}

// note judges the transactions of a page.
func (l *HollowJudge) note(ctx context.Context, server *Server, groups []group) error {
	var hollow, others []string
	for _, one := range groups {
		if one.gtid == "" {
			continue
		}
		isHollow, table := one.hollow()
		if isHollow && table != (tableName{}) {
			isMemory, err := server.isMemory(ctx, table)
			if err != nil {
				return err
			}
			isHollow = isMemory
		}
		if isHollow {
			hollow = append(hollow, one.gtid)
		} else {
			others = append(others, one.gtid)
		}
	}
	l.hollow = l.hollow.Union(setOf(hollow...).Subtract(l.others))
	l.others = l.others.Union(setOf(others...).Subtract(l.hollow))
	return nil
}

// isMemory reports whether a table exists and its engine is MEMORY. A table that is gone may have had any engine: the logbook can judge a
// transaction that emptied a table only while the table exists.
func (s *Server) isMemory(ctx context.Context, table tableName) (bool, error) {
	isThere, isMemory := false, true
	err := s.bounded(ctx, "SELECT COALESCE(ENGINE, '') FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", func(rows *sql.Rows) error {
		var engine string
		if err := rows.Scan(&engine); err != nil {
			return err
		}
		isThere, isMemory = true, isMemory && engine == "MEMORY"
		return nil
	}, table.database, table.table)
	return isThere && isMemory, err
}

// previousGTIDs returns the transactions that were logged before a file began. It asks mysqld once for each file.
func (l *HollowJudge) previousGTIDs(ctx context.Context, server *Server, file string) (replication.GTIDSet, error) {
	if known, found := l.previous[file]; found {
		return known, nil
	}
	previous, err := server.previousGTIDs(ctx, file)
	if err != nil {
		return replication.GTIDSet{}, err
	}
	l.answers++
	l.previous[file] = previous
	return previous, nil
}

// previousGTIDs reads the transactions that were logged before a file began.
func (s *Server) previousGTIDs(ctx context.Context, file string) (replication.GTIDSet, error) {
	events, err := s.binlogEvents(ctx, file, logHeader, 2)
	if err != nil {
		return replication.GTIDSet{}, err
	}
	for _, event := range events {
		if event.kind == kindPrevious {
			return replication.ParseGTIDSet(event.info)
		}
	}
	return replication.GTIDSet{}, fmt.Errorf("the binary log %.100q has no event Previous_gtids, which lists the transactions before it", file)
}

// binlogEvents reads events from a position, at which an event must begin.
func (s *Server) binlogEvents(ctx context.Context, file string, from int64, most int) ([]logEvent, error) {
	var events []logEvent
	var kind, info sql.RawBytes
	var ignored any
	statement := "SHOW BINLOG EVENTS IN ? FROM " + strconv.FormatInt(from, 10) + " LIMIT " + strconv.Itoa(most)
	err := s.bounded(ctx, statement, func(rows *sql.Rows) error {
		var event logEvent
		if err := rows.Scan(&ignored, &event.from, &kind, &ignored, &event.next, &info); err != nil {
			return err
		}
		event.kind, event.next = string(kind), endOf(event.from, event.next)
		isRead := event.kind == kindQuery && len(info) <= longestStatement || event.kind == kindPrevious || len(info) <= longestGTID
		if isRead {
			event.info = string(info)
		}
		events = append(events, event)
		return nil
	}, file)
	return events, err
}

// endOf returns the position where an event ends, from the position that mysqld prints. The log has that position in 32 bits, but one
// transaction can make a file larger than 4 GiB. If no event can end at the result, endOf returns the printed position.
func endOf(from, told int64) int64 {
	const turn, largest = 1 << 32, 2 << 30
	end := told
	if end < from {
		end += (from - end + turn - 1) / turn * turn
	}
	if end-from > largest {
		return told
	}
	return end
}

// longestGTID is longer than the info of any Gtid event, in bytes.
const longestGTID = 256
