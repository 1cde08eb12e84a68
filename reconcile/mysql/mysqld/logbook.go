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

// Logbook judges transactions by what is in a mysqld's own binary log, read by SQL, so that MySQL's own parser reads it. It remembers what
// it has judged and how far it has read, for one start of mysqld; the zero value knows nothing. It may be used by one goroutine at a time.
type Logbook struct {
	// of are the servers whose transactions were noted on the way, by UUID.
	of map[string]bool
	// hollow and others are what was judged. The first judgement stays.
	hollow, others replication.GTIDSet
	// executed is the last look at what is executed. The log may be ahead of it.
	executed replication.GTIDSet
	// files are how far each file was read, previous what was logged before it was begun.
	files    map[string]reading
	previous map[string]replication.GTIDSet
	// answers counts what mysqld has answered.
	answers int
	// mark is where the log ended a while ago, since where it ended when nothing was asked for and all that had been logged at the mark was
	// known.
	mark, since BinaryLog
}

// reading is how far a file was read. Nothing more is read of one that holds an event which is too large, or in which reading leads
// nowhere: what else is in it is not judged. wasLost says that it is read anew, since mysqld found no event at the position.
type reading struct {
	next             int64
	tooMuch, wasLost bool
}

// to goes on behind a page. isLast says that the log ends there at present.
func (r reading) to(next int64, isLast bool) reading {
	r.tooMuch = r.tooMuch || next <= r.next && !isLast
	r.next = max(r.next, next)
	return r
}

// lost begins anew, once.
func (r reading) lost() reading { return reading{wasLost: true, tooMuch: r.wasLost} }

const (
	// pagesALook bounds what one look reads, beside its time, and filesALook how far it goes back. A page has mostEvents, or fewer where they
	// are large.
	pagesALook  = 256
	filesALook  = 64
	mostEvents  = 2000
	leastEvents = 8
	// pageBytes is how much mysqld may answer to one question, in bytes. An event repeats a statement, which may have a gigabyte, and the
	// driver holds all of it in memory.
	pageBytes = 4 << 20
	// logHeader is where the first event of a file begins.
	logHeader = 4
)

// Hollow is what was judged to be hollow, of what the server has by a look. What is executed only grows: where it does not, its
// transactions were reset, or its data replaced.
func (l *Logbook) Hollow(executed replication.GTIDSet) replication.GTIDSet {
	if !executed.Contains(l.executed) {
		*l = Logbook{}
	}
	l.executed = executed
	return l.hollow.Both(executed)
}

// Answers counts what mysqld has answered. Where it stands still, mysqld hangs.
func (l *Logbook) Answers() int { return l.answers }

// Mark notes that nothing is asked for at present. What is asked for later is looked for behind the last mark first, since a file may have
// a gigabyte. A transaction can be in the log before it counts as executed, so a mark is good from the next one on.
func (l *Logbook) Mark(ctx context.Context, server *Server) error {
	files, err := server.BinaryLogs(ctx)
	if err != nil || len(files) == 0 {
		return err
	}
	l.since, l.mark = l.mark, files[len(files)-1]
	l.answers++
	return nil
}

// Judge looks for transactions that were not judged yet, newest file first. It ends when it has them all, has read much, or the context
// ends; another call goes on.
func (l *Logbook) Judge(ctx context.Context, server *Server, wanted, executed replication.GTIDSet) error {
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
	// What is purged, far back, or cannot be found is not understood.
	l.others = l.others.Union(l.unjudged(wanted))
	return nil
}

func (l *Logbook) unjudged(wanted replication.GTIDSet) replication.GTIDSet {
	return wanted.Subtract(l.hollow).Subtract(l.others)
}

// noteServers sees to it that the transactions of all servers that are asked for are noted; with another one all is read again.
func (l *Logbook) noteServers(wanted replication.GTIDSet) {
	if l.of == nil {
		l.of, l.files, l.previous = map[string]bool{}, map[string]reading{}, map[string]replication.GTIDSet{}
	}
	for _, uuid := range wanted.Servers() {
		if !l.of[uuid] {
			l.of[uuid], l.files = true, map[string]reading{}
		}
	}
}

// keepUp forgets the files that are gone, or everything where the log begins anew.
func (l *Logbook) keepUp(files []BinaryLog, wanted replication.GTIDSet) {
	if l.hasShrunk(files) {
		*l = Logbook{executed: l.executed}
		l.noteServers(wanted)
	}
	isThere := map[string]bool{}
	for _, file := range files {
		isThere[file.Name] = true
	}
	maps.DeleteFunc(l.files, func(name string, _ reading) bool { return !isThere[name] })
	maps.DeleteFunc(l.previous, func(name string, _ replication.GTIDSet) bool { return !isThere[name] })
}

// hasShrunk says whether a file is shorter than what was read of it: RESET BINARY LOGS AND GTIDS begins with the same names.
func (l *Logbook) hasShrunk(files []BinaryLog) bool {
	for _, file := range files {
		isMarked := file.Name == l.since.Name && file.Size < l.since.Size
		if isMarked || file.Size < l.files[file.Name].next {
			return true
		}
	}
	return false
}

// readFile reads on in a file to its end, or so many pages; it returns how many are left.
func (l *Logbook) readFile(ctx context.Context, server *Server, file string, executed replication.GTIDSet, pages int) (left int, err error) {
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
			return pages, fmt.Errorf("read %s from %d: %w; what follows in it is not judged", file, at.next, err)
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
		at = at.to(read.next, isLast)
		l.files[file] = at
		if isLast {
			return pages - 1, nil
		}
		events = min(mostEvents, events*2)
	}
	return pages, nil
}

// note judges the transactions of a page.
func (l *Logbook) note(ctx context.Context, server *Server, groups []group) error {
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

// isMemory says whether a table is there and of engine MEMORY. One that is gone may have been of any: a transaction that emptied it is
// judged while it is there, or not at all.
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

// previousGTIDs asks for what was logged before a file was begun, once.
func (l *Logbook) previousGTIDs(ctx context.Context, server *Server, file string) (replication.GTIDSet, error) {
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

// previousGTIDs is what was logged before a file was begun.
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
	return replication.GTIDSet{}, fmt.Errorf("the binary log %.100q does not say which transactions came before it", file)
}

// binlogEvents reads events from a position on, where one begins.
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

// endOf is where an event ends that mysqld tells to end somewhere. The log has that in 32 bits, and one transaction can make a file of more
// than 4 GiB. Where no event can end, it is left as it is.
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

// longestGTID is longer than what tells of a GTID, in bytes.
const longestGTID = 256
