package mysqld

import (
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// logEvent is an event of the binary log as SHOW BINLOG EVENTS tells it. Only Gtid and Query events have an info.
type logEvent struct {
	kind, info string
	// from is where it begins in its file, next where the following one does.
	from, next int64
}

const (
	kindGTID      = "Gtid"
	kindAnonymous = "Anonymous_Gtid"
	kindQuery     = "Query"
	kindPrevious  = "Previous_gtids"
)

// group are the events of one transaction.
type group struct {
	// gtid is its GTID, empty where nobody asks for it.
	gtid string
	from int64
	// texts are its statements. strange says that there is something else in it, or more of them than a hollow transaction has.
	texts   []string
	strange bool
}

// mostStatements is how many statements a hollow transaction has: BEGIN and COMMIT.
const mostStatements = 2

// groupsOf puts a page of events together to transactions. Whatever stands before the first GTID belongs to one that was judged before.
func groupsOf(events []logEvent, asked func(gtid string) bool) []group {
	var groups []group
	for _, event := range events {
		switch {
		case strings.HasPrefix(event.kind, kindGTID), event.kind == kindAnonymous:
			next := group{gtid: gtidOf(event), from: event.from}
			if !asked(next.gtid) {
				next.gtid = ""
			}
			groups = append(groups, next)
		case len(groups) == 0, groups[len(groups)-1].gtid == "":
		case isBetween(event.kind):
			groups = append(groups, group{from: event.from}) // it ends the one before
		default:
			groups[len(groups)-1].add(event)
		}
	}
	return groups
}

// isBetween says whether an event stands between transactions.
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

// gtidOf reads the GTID in "SET @@SESSION.GTID_NEXT= 'UUID:NUMBER'"; empty where there is none.
func gtidOf(event logEvent) string {
	_, rest, found := strings.Cut(event.info, "'")
	gtid, _, closed := strings.Cut(rest, "'")
	if !found || !closed {
		return ""
	}
	return gtid
}

// hollow says whether a transaction changes no row: one statement of upkeep, or none at all. table is the one that has to be of engine
// MEMORY for that, if any.
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

// page is what was learnt of a part of a binary log.
type page struct {
	groups []group
	// next is where to read on.
	next int64
}

// pageOf judges which of the transactions in a page are there as a whole. isLast says that the page ends where the log does at present;
// executed transactions are whole then, another may be about to be written.
func pageOf(events []logEvent, isLast bool, of map[string]bool, executed replication.GTIDSet) page {
	asked := func(gtid string) bool {
		uuid, number, _ := strings.Cut(gtid, ":")
		// Transactions with a tag are nobody's upkeep: a tag has to be asked for.
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

// setOf is the set of some GTIDs; empty if one is none.
func setOf(gtids ...string) replication.GTIDSet {
	set, err := replication.ParseGTIDSet(strings.Join(gtids, ","))
	if err != nil {
		return replication.GTIDSet{}
	}
	return set
}
