package mysqld

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	ownUUID   = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	otherUUID = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
)

// events returns events as SHOW BINLOG EVENTS prints them, each 100 bytes long: "G5" is GTID 5 of this server, "O5" of another, "T5" with a
// tag, "A" is anonymous, "Q:x" is a statement, and any other word is an event of that kind.
func events(text string) []logEvent {
	var all []logEvent
	for part := range strings.SplitSeq(text, "|") {
		event := logEvent{kind: part, from: int64(len(all) * 100), next: int64(len(all)*100 + 100)}
		statement, isQuery := strings.CutPrefix(part, "Q:")
		gtid := func(uuid string) {
			event.kind, event.info = kindGTID, "SET @@SESSION.GTID_NEXT= '"+uuid+":"+part[1:]+"'"
		}
		switch {
		case part == "A":
			event.kind, event.info = kindAnonymous, "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'"
		case isQuery:
			event.kind, event.info = kindQuery, statement
		case strings.HasPrefix(part, "G"):
			gtid(ownUUID)
		case strings.HasPrefix(part, "O"):
			gtid(otherUUID)
		case part == "T5":
			event.kind, event.info = "Gtid_tagged", "SET @@SESSION.GTID_NEXT= '"+ownUUID+":tag:5'"
		}
		all = append(all, event)
	}
	return all
}

func TestTransactionsAreJudgedAsAWhole(t *testing.T) {
	t.Parallel()
	emptied := "Q:TRUNCATE TABLE `shop`.`t`" + generated
	for name, test := range map[string]struct {
		events string
		// isLast reports whether the log ends there, executed which transactions are executed.
		isLast   bool
		executed string
		// want are the judged numbers, with ! if a transaction is not hollow, and with the table whose engine must be MEMORY.
		want []string
		next int64
	}{
		"upkeep":                                          {"G1|Q:FLUSH STATUS|G2|Q:use `a`; ANALYZE TABLE t|Stop", false, "1-2", []string{"1", "2"}, 500},
		"an empty transaction":                            {"G1|Q:BEGIN|Q:COMMIT|Rotate", false, "1", []string{"1"}, 400},
		"a row":                                           {"G1|Q:BEGIN|Table_map|Write_rows|Xid|G2|Q:FLUSH STATUS|Stop", false, "1-2", []string{"!1", "2"}, 800},
		"rows before upkeep":                              {"G1|Q:BEGIN|Write_rows|Q:COMMIT|Stop", false, "1", []string{"!1"}, 500},
		"DDL":                                             {"G1|Q:DROP TABLE t|Stop", false, "1", []string{"!1"}, 300},
		"upkeep within a transaction":                     {"G1|Q:BEGIN|Q:FLUSH STATUS|Q:COMMIT|Stop", false, "1", []string{"!1"}, 500},
		"two statements of upkeep":                        {"G1|Q:FLUSH STATUS|Q:FLUSH TABLES|Stop", false, "1", []string{"!1"}, 400},
		"a begin without an end":                          {"G1|Q:BEGIN|Stop", false, "1", []string{"!1"}, 300},
		"an end without a begin":                          {"G1|Q:COMMIT|Stop", false, "1", []string{"!1"}, 300},
		"ended by XA or a row":                            {"G1|Q:BEGIN|Xid|Stop", false, "1", []string{"!1"}, 400},
		"an unknown event":                                {"G1|Q:FLUSH STATUS|Unknown|Stop", false, "1", []string{"!1"}, 400},
		"variables of a statement":                        {"G1|Intvar|Q:FLUSH STATUS|Stop", false, "1", []string{"!1"}, 400},
		"nothing at all":                                  {"G1|Stop", false, "1", []string{"!1"}, 200},
		"a compressed transaction":                        {"G1|Transaction_payload|Stop", false, "1", []string{"!1"}, 300},
		"an emptied table":                                {"G1|" + emptied + "|Stop", false, "1", []string{"1 of shop.t"}, 300},
		"an emptied table in a transaction":               {"G1|Q:BEGIN|" + emptied + "|Stop", false, "1", []string{"!1"}, 400},
		"transactions of other servers are ignored":       {"O1|Q:FLUSH STATUS|G2|Q:FLUSH STATUS|O3|Q:FLUSH STATUS", false, "2", []string{"2"}, 600},
		"transactions with a tag are ignored":             {"T5|Q:FLUSH STATUS|G2|Q:FLUSH STATUS|Stop", false, "2", []string{"2"}, 500},
		"transactions without a GTID are ignored":         {"G2|Q:FLUSH STATUS|A|Q:DROP TABLE t|Stop", false, "2", []string{"2"}, 500},
		"events that continue the page before":            {"Write_rows|Q:FLUSH STATUS|G2|Q:FLUSH STATUS|Stop", false, "2", []string{"2"}, 500},
		"the last transaction of a page may continue":     {"G1|Q:FLUSH STATUS|G2|Q:BEGIN", false, "1-2", []string{"1"}, 200},
		"but it is judged if it already has a row":        {"G1|Q:FLUSH STATUS|G2|Q:BEGIN|Write_rows", false, "1-2", []string{"1", "!2"}, 500},
		"the last one of the log is complete if executed": {"G1|Q:FLUSH STATUS|G2|Q:FLUSH STATUS", true, "1-2", []string{"1", "2"}, 400},
		"otherwise it is still being written":             {"G1|Q:FLUSH STATUS|G2", true, "1", []string{"1"}, 200},
		"a GTID of number 0":                              {"G0|Q:FLUSH STATUS|G2|Q:FLUSH STATUS|Stop", false, "2", []string{"2"}, 500},
		"an invalid GTID":                                 {"Gx|Q:FLUSH STATUS|G2|Q:FLUSH STATUS|Stop", false, "2", []string{"2"}, 500},
	} {
		executed, err := replication.ParseGTIDSet(ownUUID + ":" + test.executed)
		if err != nil {
			t.Fatal(err)
		}
		read := pageOf(events(test.events), test.isLast, map[string]bool{ownUUID: true}, executed)
		var got []string
		for _, one := range read.groups {
			if one.gtid == "" {
				continue
			}
			isHollow, table := one.hollow()
			text := strings.TrimPrefix(one.gtid, ownUUID+":")
			if !isHollow {
				text = "!" + text
			} else if table != (tableName{}) {
				text += fmt.Sprintf(" of %s.%s", table.database, table.table)
			}
			got = append(got, text)
		}
		if !slices.Equal(got, test.want) || read.next != test.next {
			t.Errorf("%s: %q, then from %d; want %q, then from %d", name, got, read.next, test.want, test.next)
		}
	}
}
