package binlog

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// numbers is a set of untagged GTIDs to which single transactions can be added quickly. The intervals of a server are in ascending order,
// and no two touch. replication.GTIDSet is a value: adding a transaction to it would copy the set.
type numbers map[uuid][]interval

// interval is a range of transaction numbers, including first and excluding end.
type interval struct{ first, end int64 }

// gtid is an untagged GTID.
type gtid struct {
	server uuid
	number int64
}

// String formats a GTID as MySQL does.
func (g gtid) String() string { return g.server.String() + ":" + strconv.FormatInt(g.number, 10) }

// after returns the index of the first interval that ends behind a number.
func after(list []interval, number int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].end > number })
}

func (n numbers) has(g gtid) bool {
	list := n[g.server]
	at := after(list, g.number)
	return at < len(list) && list[at].first <= g.number
}

// add adds a GTID that is not in the set.
func (n numbers) add(g gtid) {
	list := n[g.server]
	at := after(list, g.number)
	follows := at > 0 && list[at-1].end == g.number
	precedes := at < len(list) && list[at].first == g.number+1
	switch {
	case follows && precedes:
		list[at-1].end = list[at].end
		list = slices.Delete(list, at, at+1)
	case follows:
		list[at-1].end++
	case precedes:
		list[at].first--
	default:
		list = slices.Insert(list, at, interval{first: g.number, end: g.number + 1})
	}
	n[g.server] = list
}

// set returns the same set as a value.
func (n numbers) set() (replication.GTIDSet, error) {
	var text strings.Builder
	for server, list := range n {
		text.WriteString("," + server.String())
		for _, piece := range list {
			text.WriteString(":" + strconv.FormatInt(piece.first, 10) + "-" + strconv.FormatInt(piece.end-1, 10))
		}
	}
	return replication.ParseGTIDSet(text.String())
}

// numbersOf returns the untagged GTIDs of a set. Only untagged ones can be in a file that is not refused.
func numbersOf(set replication.GTIDSet) (numbers, error) {
	all := numbers{}
	for part := range strings.SplitSeq(set.String(), ",") {
		if part == "" {
			continue
		}
		name, rest, _ := strings.Cut(part, ":")
		var server uuid
		if _, err := hex.Decode(server[:], []byte(strings.ReplaceAll(name, "-", ""))); err != nil {
			return nil, fmt.Errorf("server UUID %q: %w", name, err)
		}
		list, err := intervalsOf(rest)
		if err != nil {
			return nil, fmt.Errorf("GTIDs of %s: %w", name, err)
		}
		all[server] = list
	}
	maps.DeleteFunc(all, func(_ uuid, list []interval) bool { return len(list) == 0 })
	return all, nil
}

// intervalsOf parses the intervals of one server as GTIDSet.String formats them: those without a tag come first.
func intervalsOf(text string) ([]interval, error) {
	var list []interval
	for element := range strings.SplitSeq(text, ":") {
		if element == "" || element[0] < '0' || element[0] > '9' {
			break // a tag
		}
		first, last, isRange := strings.Cut(element, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return nil, err
		}
		to, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, interval{first: from, end: to + 1})
	}
	return list, nil
}
