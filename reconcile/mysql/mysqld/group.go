package mysqld

import (
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// logEvent is an event of the binary log as SHOW BINLOG EVENTS prints it. Only Gtid and Query events have an info.
type logEvent struct {
	kind, info string
	// from is its position in its file, next the position of the following event.
	from, next int64
}

const (
	kindGTID      = "Gtid"
	kindAnonymous = "Anonymous_Gtid"
	kindQuery     = "Query"
	kindPrevious  = "Previous_gtids"
)

// group is the events of one transaction.
type group struct {
	// gtid is its GTID, empty if the caller does not ask for it.
	gtid string
	from int64
	// texts are its statements. strange reports whether it has other events, or more statements than a hollow transaction.
	texts   []string
	strange bool
}

// mostStatements is the largest number of statements in a hollow transaction: BEGIN and COMMIT.
const mostStatements = 2

// groupsOf groups a page of events by transaction. Events before the first GTID belong to a transaction that was judged before.
func groupsOf(events []logEvent, asked func(gtid string) bool) []group {
	var groups []group
	for _, event := range events {
		switch {
		case startsGroup(event):
			next := group{gtid: gtidOf(event), from: event.from}
			if !asked(next.gtid) {
				next.gtid = ""
			}
			groups = append(groups, next)
		case len(groups) == 0, groups[len(groups)-1].gtid == "":
		case isBetween(event.kind):
			groups = append(groups, group{from: event.from}) // the event ends the transaction before it
		default:
			groups[len(groups)-1].add(event)
		}
	}
	return groups
}

// startsGroup reports whether an event begins a transaction.
func startsGroup(event logEvent) bool {
	return strings.HasPrefix(event.kind, kindGTID) || event.kind == kindAnonymous
}

// isBetween reports whether an event stands between transactions.
func isBetween(kind string) bool {
	switch kind {
	case "Rotate", "Stop", "Format_desc", kindPrevious, "Heartbeat":
		return true
	}
	return false
}

func (g *group) add(event logEvent) {
	if event.kind != kindQuery || len(g.texts) == mostStatements {
		g.strange = true
		return
	}
	g.texts = append(g.texts, event.info)
}

// gtidOf reads the GTID in "SET @@SESSION.GTID_NEXT= 'UUID:NUMBER'". It returns "" if there is no GTID.
func gtidOf(event logEvent) string {
	_, rest, found := strings.Cut(event.info, "'")
	gtid, _, closed := strings.Cut(rest, "'")
	if !found || !closed {
		return ""
	}
	return gtid
}

// hollow reports whether a transaction changes no row: it has one maintenance statement, or none. If it returns a table, the transaction is
// hollow only if the table's engine is MEMORY.
func (g group) hollow() (isHollow bool, table tableName) {
	if g.strange || len(g.texts) == 0 {
		return false, tableName{}
	}
	first, table := recognise(g.texts[0])
	if len(g.texts) == 1 {
		return first == meansUpkeep || first == meansEmptied, table
	}
	last, _ := recognise(g.texts[1])
	return first == meansBegin && last == meansCommit, tableName{}
}

// page is the result of reading a part of a binary log.
type page struct {
	groups []group
	// next is the position to continue from.
	next int64
}

// pageOf returns the transactions of a page that are complete. isLast reports whether the page ends at the current end of the log. There,
// an executed transaction is complete, and another one may still be being written.
func pageOf(events []logEvent, isLast bool, of map[string]bool, executed replication.GTIDSet) page {
	asked := func(gtid string) bool {
		uuid, number, _ := strings.Cut(gtid, ":")
		// A transaction with a tag is not maintenance: MySQL sets tags only for clients that ask for them.
		return of[strings.ToLower(uuid)] && strings.Trim(number, "0123456789") == "" && !setOf(gtid).Empty()
	}
	read := page{groups: groupsOf(events, asked)}
	if len(events) == 0 {
		return read
	}
	read.next = events[len(events)-1].next
	at := len(read.groups) - 1
	if at < 0 || read.groups[at].gtid == "" {
		return read
	}
	last := read.groups[at]
	isWhole := last.strange || isLast && executed.Contains(setOf(last.gtid))
	if !isWhole {
		read.groups, read.next = read.groups[:at], last.from
	}
	return read
}

// setOf parses GTIDs into a set. It returns the empty set if one of them is not valid.
func setOf(gtids ...string) replication.GTIDSet {
	set, err := replication.ParseGTIDSet(strings.Join(gtids, ","))
	if err != nil {
		return replication.GTIDSet{}
	}
	return set
}
