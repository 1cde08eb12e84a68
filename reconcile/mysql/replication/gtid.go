package replication

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// GTIDSet is a set of global transaction identifiers as MySQL writes it (manual, "GTID Sets"). It has a list of intervals for every source
// UUID and, since MySQL 8.3, for every tag of a UUID. The zero value is the empty set. Sets are values: no method changes its receiver or
// argument.
type GTIDSet struct {
	intervals map[gtidSource][]interval
}

// gtidSource is one source of transactions: a server UUID and, for tagged GTIDs, the tag.
type gtidSource struct{ uuid, tag string }

// interval is a range of transaction numbers, including first and excluding end.
type interval struct{ first, end int64 }

// ParseGTIDSet parses a set as printed by gtid_executed, gtid_purged or SHOW REPLICA STATUS, with white space and line breaks anywhere
// between its elements. The empty string is the empty set.
func ParseGTIDSet(text string) (GTIDSet, error) {
	set := GTIDSet{intervals: map[gtidSource][]interval{}}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if err := set.parseSource(part); err != nil {
			return GTIDSet{}, fmt.Errorf("parse GTID set %.*q: %w", quoted, text, err)
		}
	}
	for source, list := range set.intervals {
		set.intervals[source] = normalise(list)
	}
	return set, nil
}

// ParseOwnedGTIDs parses gtid_owned: the transactions in progress, each with the threads that own it, as in "UUID:5#12:6#13". MySQL writes
// no separator between two sources, so a thread's number is followed directly by the next UUID. The form of the UUID shows where it begins.
func ParseOwnedGTIDs(text string) (GTIDSet, error) {
	text = strings.ToLower(text)
	var set strings.Builder
	for i := 0; i < len(text); {
		switch {
		case len(text)-i >= uuidLength && isUUID(text[i:i+uuidLength]):
			set.WriteString("," + text[i:i+uuidLength])
			i += uuidLength
		case text[i] == '#':
			i = skipThread(text, i+1)
		default:
			set.WriteByte(text[i])
			i++
		}
	}
	return ParseGTIDSet(set.String())
}

// skipThread returns the position at which a thread's number ends.
func skipThread(text string, i int) int {
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		if len(text)-i >= uuidLength && isUUID(text[i:i+uuidLength]) {
			break
		}
	}
	return i
}

func (s GTIDSet) parseSource(part string) error {
	uuid, rest, found := strings.Cut(part, ":")
	uuid = strings.ToLower(strings.TrimSpace(uuid))
	if !found || !isUUID(uuid) {
		return fmt.Errorf("%.*q does not start with a server UUID and a colon", quoted, part)
	}
	source := gtidSource{uuid: uuid}
	for element := range strings.SplitSeq(rest, ":") {
		element = strings.TrimSpace(element)
		if isTag(element) {
			source.tag = strings.ToLower(element)
			continue
		}
		got, err := parseInterval(element)
		if err != nil {
			return err
		}
		s.intervals[source] = append(s.intervals[source], got)
	}
	return nil
}

func parseInterval(text string) (interval, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err != nil {
		return interval{}, fmt.Errorf("interval %.*q: %w", quoted, text, errors.Unwrap(err))
	}
	to, err := strconv.ParseInt(strings.TrimSpace(last), 10, 64)
	if err != nil {
		return interval{}, fmt.Errorf("interval %.*q: %w", quoted, text, errors.Unwrap(err))
	}
	if from < 1 || to < from || to == math.MaxInt64 {
		return interval{}, fmt.Errorf("interval %.*q is not an ascending range of positive numbers", quoted, text)
	}
	return interval{first: from, end: to + 1}, nil
}

const (
	uuidLength = 36
	// quoted limits how much of a text an error repeats, in characters: a set may have a megabyte.
	quoted = 100
)

func isUUID(text string) bool {
	if len(text) != uuidLength {
		return false
	}
	for i, r := range text {
		allowed := "0123456789abcdef"
		if i == 8 || i == 13 || i == 18 || i == 23 {
			allowed = "-"
		}
		if !strings.ContainsRune(allowed, r) {
			return false
		}
	}
	return true
}

// isTag reports whether an element of a set is a tag: up to 32 letters, digits and underscores, not starting with a digit (manual, "GTID
// Format"). An interval starts with a digit.
func isTag(text string) bool {
	if text == "" || len(text) > 32 || strings.ContainsRune(digits, rune(text[0])) {
		return false
	}
	return strings.Trim(text, letters+digits+"_") == ""
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// normalise sorts intervals and joins those that touch or overlap.
func normalise(list []interval) []interval {
	slices.SortFunc(list, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	joined := list[:0:0]
	for _, next := range list {
		last := len(joined) - 1
		if last >= 0 && next.first <= joined[last].end {
			joined[last].end = max(joined[last].end, next.end)
			continue
		}
		joined = append(joined, next)
	}
	return joined
}

// Empty reports whether the set has no transactions.
func (s GTIDSet) Empty() bool { return len(s.intervals) == 0 }

// Union returns the transactions that are in either set.
func (s GTIDSet) Union(other GTIDSet) GTIDSet {
	all := map[gtidSource][]interval{}
	for source, list := range s.intervals {
		all[source] = slices.Clone(list)
	}
	for source, list := range other.intervals {
		all[source] = normalise(append(all[source], list...))
	}
	return GTIDSet{intervals: all}
}

// Subtract returns the transactions of the set that are not in other.
func (s GTIDSet) Subtract(other GTIDSet) GTIDSet {
	left := map[gtidSource][]interval{}
	for source, list := range s.intervals {
		if rest := subtract(list, other.intervals[source]); len(rest) > 0 {
			left[source] = rest
		}
	}
	return GTIDSet{intervals: left}
}

// subtract passes through both lists once: intervals are sorted, and no two touch.
func subtract(from, cut []interval) []interval {
	var left []interval
	at := 0
	for _, piece := range from {
		for at < len(cut) && cut[at].end <= piece.first {
			at++
		}
		for ; at < len(cut) && cut[at].first < piece.end; at++ {
			hole := cut[at]
			if hole.first > piece.first {
				left = append(left, interval{piece.first, hole.first})
			}
			piece.first = min(hole.end, piece.end)
			if hole.end >= piece.end {
				break // the hole may reach into the next piece
			}
		}
		if piece.first < piece.end {
			left = append(left, piece)
		}
	}
	return left
}

// Both returns the transactions that are in both sets.
func (s GTIDSet) Both(other GTIDSet) GTIDSet { return s.Subtract(s.Subtract(other)) }

// Latest returns at most most transactions of the set: of each source those with the highest numbers.
func (s GTIDSet) Latest(most int64) GTIDSet {
	some := map[gtidSource][]interval{}
	for _, source := range s.sources() {
		list := s.intervals[source]
		for at := len(list) - 1; at >= 0 && most > 0; at-- {
			piece := list[at]
			piece.first = max(piece.first, piece.end-most)
			most -= piece.end - piece.first
			some[source] = append(some[source], piece)
		}
		slices.Reverse(some[source])
		if most == 0 {
			break
		}
	}
	return GTIDSet{intervals: some}
}

// All yields every transaction of the set, in order, as MySQL writes a GTID.
func (s GTIDSet) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, source := range s.sources() {
			name := source.uuid + ":"
			if source.tag != "" {
				name += source.tag + ":"
			}
			for _, piece := range s.intervals[source] {
				for number := piece.first; number < piece.end; number++ {
					if !yield(name + strconv.FormatInt(number, 10)) {
						return
					}
				}
			}
		}
	}
}

// Contains reports whether every transaction of other is in the set.
func (s GTIDSet) Contains(other GTIDSet) bool {
	for source, list := range other.intervals {
		if !covers(s.intervals[source], list) {
			return false
		}
	}
	return true
}

// covers reports whether every interval of inner lies within an interval of outer.
func covers(outer, inner []interval) bool {
	at := 0
	for _, piece := range inner {
		for at < len(outer) && outer[at].end <= piece.first {
			at++
		}
		if at == len(outer) || outer[at].first > piece.first || outer[at].end < piece.end {
			return false
		}
	}
	return true
}

// Equal reports whether both sets have the same transactions.
func (s GTIDSet) Equal(other GTIDSet) bool { return s.Contains(other) && other.Contains(s) }

// WithoutServer returns the set without the transactions that began on the server with this UUID, with any tag.
func (s GTIDSet) WithoutServer(uuid string) GTIDSet {
	return s.ofSources(func(source gtidSource) bool { return !strings.EqualFold(source.uuid, uuid) })
}

// OfServer returns the transactions of the set that began on the server with this UUID, with any tag.
func (s GTIDSet) OfServer(uuid string) GTIDSet {
	return s.ofSources(func(source gtidSource) bool { return strings.EqualFold(source.uuid, uuid) })
}

func (s GTIDSet) ofSources(wanted func(gtidSource) bool) GTIDSet {
	some := map[gtidSource][]interval{}
	for source, list := range s.intervals {
		if wanted(source) {
			some[source] = list
		}
	}
	return GTIDSet{intervals: some}
}

// NextOf returns a GTID of the server with this UUID that follows all those of the set that have no tag.
func (s GTIDSet) NextOf(uuid string) string {
	uuid, number := strings.ToLower(uuid), int64(1)
	if list := s.intervals[gtidSource{uuid: uuid}]; len(list) > 0 {
		number = list[len(list)-1].end
	}
	return uuid + ":" + strconv.FormatInt(number, 10)
}

// Servers returns the sorted UUIDs of the servers on which transactions of the set began.
func (s GTIDSet) Servers() []string {
	all := make([]string, 0, len(s.intervals))
	for _, source := range s.sources() {
		all = append(all, source.uuid)
	}
	return slices.Compact(all)
}

// Count is the number of transactions in the set.
func (s GTIDSet) Count() int64 {
	var count int64
	for _, list := range s.intervals {
		for _, piece := range list {
			count += piece.end - piece.first
		}
	}
	return count
}

// String formats the set as MySQL does, with sorted sources, so that equal sets have equal texts.
func (s GTIDSet) String() string {
	var text strings.Builder
	previous := ""
	for _, source := range s.sources() {
		if source.uuid != previous {
			if previous != "" {
				text.WriteString(",")
			}
			text.WriteString(source.uuid)
			previous = source.uuid
		}
		if source.tag != "" {
			text.WriteString(":" + source.tag)
		}
		for _, piece := range s.intervals[source] {
			text.WriteString(":" + strconv.FormatInt(piece.first, 10))
			if piece.end-1 > piece.first {
				text.WriteString("-" + strconv.FormatInt(piece.end-1, 10))
			}
		}
	}
	return text.String()
}

// sources returns the sorted sources of the set.
func (s GTIDSet) sources() []gtidSource {
	return slices.SortedFunc(maps.Keys(s.intervals), func(a, b gtidSource) int {
		return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.tag, b.tag))
	})
}

// MarshalText and UnmarshalText encode a set in JSON as MySQL's own text.
func (s GTIDSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses what MarshalText wrote.
func (s *GTIDSet) UnmarshalText(text []byte) error {
	set, err := ParseGTIDSet(string(text))
	if err != nil {
		return err
	}
	*s = set
	return nil
}
