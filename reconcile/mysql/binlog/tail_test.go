package binlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTheTailBeginsWhereTheFirstMissingTransactionDoes: each story is a file, what other servers have, and what must be cut off.
func TestTheTailBeginsWhereTheFirstMissingTransactionDoes(t *testing.T) {
	t.Parallel()
	const none = -1
	a, b := serverA+":", serverB+":"
	for story, test := range map[string]struct {
		log *log
		has string
		// from is the index of the transaction at which the tail begins.
		from            int
		gtids, executed string
	}{
		"a file without transactions has no tail":            {newLog(), "", none, "", ""},
		"previous GTIDs are executed":                        {newLog(source{serverA, []uint64{1, 6, 8, 9}}, source{serverB, []uint64{3, 4}}), "", none, "", a + "1-5:8," + b + "3"},
		"another server has all":                             {newLog().change(serverA, 1).change(serverA, 2), a + "1-2", none, "", a + "1-2"},
		"another server has more":                            {newLog().change(serverA, 1), a + "1-9," + b + "1-4", none, "", a + "1"},
		"a tag of another transaction does not matter":       {newLog().change(serverA, 1).change(serverA, 2), a + "1:tag:2", 1, a + "2", a + "1-2"},
		"only a tagged transaction has the number":           {newLog().change(serverA, 1), a + "tag:1", 0, a + "1", a + "1"},
		"the last one is missing":                            {newLog().change(serverA, 1).change(serverA, 2), a + "1", 1, a + "2", a + "1-2"},
		"all are missing":                                    {newLog().change(serverA, 1).change(serverB, 5), "", 0, a + "1," + b + "5", a + "1," + b + "5"},
		"numbers not in order":                               {newLog().change(serverA, 5).change(serverA, 3).change(serverA, 4), a + "5", 1, a + "3-4", a + "3-5"},
		"all kinds of row events":                            {newLog().gtid(serverA, 1).query("BEGIN").event(kindRowsQuery, nil).rows().event(kindUpdateRows, nil).event(kindDeleteRows, nil).event(kindPartialUpdate, nil).xid(), "", 0, a + "1", a + "1"},
		"an empty transaction":                               {newLog().change(serverA, 1).gtid(serverA, 2).query("BEGIN").query("COMMIT").change(serverA, 3), a + "1", 1, a + "2-3", a + "1-3"},
		"a large event":                                      {newLog().gtid(serverA, 1).query("BEGIN").event(kindWriteRows, make([]byte, 3*buffered+5)).xid().change(serverA, 2), a + "1", 1, a + "2", a + "1-2"},
		"DDL before the tail":                                {newLog().ddl(serverA, 1).change(serverA, 2), a + "1", 1, a + "2", a + "1-2"},
		"DDL last, and no tail":                              {newLog().ddl(serverA, 1), a + "1", none, "", a + "1"},
		"XA before the tail":                                 {newLog().gtid(serverA, 1).query("XA START X'61',X'',1").rows().query("XA END X'61',X'',1").event(kindXAPrepare, nil).gtid(serverA, 2).query("XA COMMIT X'61',X'',1").change(serverA, 3), a + "1-2", 2, a + "3", a + "1-3"},
		"a compressed transaction before the tail":           {newLog().gtid(serverA, 1).event(kindPayload, nil).change(serverA, 2), a + "1", 1, a + "2", a + "1-2"},
		"statements before the tail":                         {newLog().gtid(serverA, 1).query("BEGIN").event(kindIntvar, nil).query("INSERT INTO t VALUES (1)").xid().change(serverA, 2), a + "1", 1, a + "2", a + "1-2"},
		"variables of a single statement":                    {newLog().gtid(serverA, 1).event(kindUserVar, nil).event(kindRand, nil).query("CREATE TABLE t SELECT 1").change(serverA, 2), a + "1", 1, a + "2", a + "1-2"},
		"a table without transactions before the tail":       {newLog().gtid(serverA, 1).query("BEGIN").rows().query("COMMIT").gtid(serverA, 2).query("BEGIN").rows().query("ROLLBACK").change(serverA, 3), a + "1-2", 2, a + "3", a + "1-3"},
		"savepoints before the tail":                         {newLog().gtid(serverA, 1).query("BEGIN").query("SAVEPOINT s").rows().query("ROLLBACK TO s").xid().change(serverA, 2), a + "1", 1, a + "2", a + "1-2"},
		"a GTID is torn, and it is all of the tail":          {newLog().change(serverA, 1).gtid(serverA, 2).cut(9), a + "1", 1, "", a + "1"},
		"a GTID is torn within its header":                   {newLog().change(serverA, 1).gtid(serverA, 2).cut(headerSize + 30), a + "1", 1, "", a + "1"},
		"only a GTID":                                        {newLog().change(serverA, 1).gtid(serverA, 2), a + "1", 1, "", a + "1"},
		"BEGIN is torn":                                      {newLog().change(serverA, 1).gtid(serverA, 2).query("BEGIN").cut(1), a + "1", 1, "", a + "1"},
		"the end of a transaction is missing":                {newLog().change(serverA, 1).gtid(serverA, 2).query("BEGIN").rows(), a + "1", 1, "", a + "1"},
		"an XID is torn":                                     {newLog().change(serverA, 1).change(serverA, 2).cut(1), a + "1", 1, "", a + "1"},
		"a torn transaction belongs to the tail":             {newLog().change(serverA, 1).change(serverA, 2).change(serverA, 3).cut(20), a + "1", 1, a + "2", a + "1-2"},
		"a torn GTID belongs to the tail":                    {newLog().change(serverA, 1).change(serverA, 2).gtid(serverA, 3).cut(20), a + "1", 1, a + "2", a + "1-2"},
		"a torn header in a transaction belongs to the tail": {newLog().change(serverA, 1).gtid(serverA, 2).query("BEGIN").rows().raw(1, 2, 3), a + "1", 1, "", a + "1"},
		"a torn header follows DDL":                          {newLog().ddl(serverA, 1).raw(1, 2, 3), a + "1", none - 1, "", a + "1"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			tail, err := test.log.read(t, test.has)
			if err != nil {
				t.Fatal(err)
			}
			from, size := int64(len(test.log.data)), int64(len(test.log.data))
			switch {
			case test.from == none-1:
				from = size - 3
			case test.from != none:
				from = int64(test.log.starts[test.from])
			}
			if tail.From != from || tail.Size != size || tail.Head != headOf(test.log) {
				t.Errorf("head %d, tail from %d of %d, want %d, %d of %d", tail.Head, tail.From, tail.Size, headOf(test.log), from, size)
			}
			if story == "an empty transaction" != tail.Empty.Equal(parse(t, a+"2")) {
				t.Errorf("%q of the tail change nothing", tail.Empty)
			}
			if !tail.GTIDs.Equal(parse(t, test.gtids)) || !tail.Executed.Equal(parse(t, test.executed)) {
				t.Errorf("tail %q, executed %q, want %q and %q", tail.GTIDs, tail.Executed, test.gtids, test.executed)
			}
		})
	}
}

// headOf is where the previous GTIDs end.
func headOf(l *log) int64 {
	if len(l.events) > 1 {
		return int64(l.events[1])
	}
	return int64(len(l.data))
}

// TestWhatIsNotUnderstoodIsRefused: each story is a file, what other servers have, and what the error says.
func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	t.Parallel()
	a := serverA + ":"
	begin := func(body []byte, flags uint16) *log { return (&log{data: []byte(magic)}).format(flags, body) }
	changed := func(at int, value byte) []byte {
		body := formatOf(algorithmCRC32)
		body[at] = value
		return body
	}
	previous := func(data []byte) *log {
		return begin(formatOf(algorithmCRC32), inUse).event(kindPrevious, data).change(serverA, 1)
	}
	one := func() *log { return newLog().gtid(serverA, 1) }
	for story, test := range map[string]struct {
		log       *log
		has, says string
	}{
		"an empty file":                  {&log{}, "", "0 bytes is no binary log"},
		"an encrypted file":              {(&log{}).raw([]byte("\xfdbin")...), "", "encrypted"},
		"only the magic":                 {(&log{}).raw([]byte(magic)...), "", "position 4 is not complete"},
		"another first event":            {(&log{data: []byte(magic)}).event(kindPrevious, encode()), "", "type 35 instead of 15"},
		"a closed file":                  {begin(formatOf(algorithmCRC32), 0).event(kindPrevious, encode()), "", "closed the file"},
		"no checksums":                   {begin(formatOf(0), inUse).event(kindPrevious, encode()), "", "algorithm is 0"},
		"another format":                 {begin(changed(0, 3), inUse), "", "version of the format is 3"},
		"other headers":                  {begin(changed(headerLengthAt, 20), inUse), "", "headers have 20"},
		"other statements":               {begin(changed(headerLengthAt+2, 14), inUse), "", "statements begin with 14"},
		"a short format description":     {begin(formatOf(1)[:40], inUse), "", "40 bytes"},
		"a long format description":      {begin(make([]byte, 5000), inUse), "", "5000 bytes"},
		"a torn format description":      {begin(formatOf(1), inUse).cut(1), "", "not complete"},
		"no previous GTIDs":              {begin(formatOf(1), inUse).change(serverA, 1), "", "type 33 instead of 35"},
		"torn previous GTIDs":            {newLog().cut(1), "", "not complete"},
		"damaged previous GTIDs":         {newLog().flip(1), "", "checksum is wrong"},
		"tags in previous GTIDs":         {previous([]byte{1, 0, 0, 0, 0, 0, 0, 1}), "", "a GTID has a tag"},
		"no number of sources":           {previous([]byte{1}), "", "no number of sources"},
		"more sources than fit":          {previous(append(number(2), make([]byte, 24)...)), "", "too short for 2 sources"},
		"more intervals than fit":        {previous(append(append(number(1), idOf(serverA)...), number(1<<60)...)), "", "too short for the"},
		"a source without intervals":     {previous(encode(source{serverA, nil})), "", "or has none"},
		"a source twice":                 {previous(encode(source{serverA, []uint64{1, 2}}, source{serverA, []uint64{5, 6}})), "", "twice"},
		"bytes behind the set":           {previous(append(encode(), 0)), "", "1 bytes follow"},
		"an interval from 0":             {previous(encode(source{serverA, []uint64{0, 2}})), "", "interval from 0"},
		"an empty interval":              {previous(encode(source{serverA, []uint64{2, 2}})), "", "interval from 2"},
		"intervals that touch":           {previous(encode(source{serverA, []uint64{1, 2, 2, 3}})), "", "interval from 2"},
		"an interval beyond all numbers": {previous(encode(source{serverA, []uint64{1, 1 << 63}})), "", "interval from 1"},

		"an unknown event":                      {newLog().change(serverA, 1).event(43, nil), a + "1", "type 43"},
		"an unknown event, torn":                {newLog().change(serverA, 1).event(43, nil).cut(1), a + "1", "type 43"},
		"a tagged GTID":                         {newLog().event(42, nil), "", "type 42"},
		"an anonymous transaction":              {newLog().event(34, nil), "", "type 34"},
		"the file was rotated":                  {newLog().change(serverA, 1).event(4, nil), a + "1", "type 4"},
		"mysqld was stopped":                    {newLog().change(serverA, 1).event(3, nil), a + "1", "type 3"},
		"an incident":                           {newLog().change(serverA, 1).event(26, nil), a + "1", "type 26"},
		"a second format description":           {newLog().change(serverA, 1).format(inUse, formatOf(1)), a + "1", "type 15"},
		"a format description in a transaction": {one().query("BEGIN").format(0, formatOf(1)), a + "1", "type 15"},
		"previous GTIDs again":                  {newLog().event(kindPrevious, encode()), "", "in no transaction"},
		"an event in no transaction":            {newLog().query("BEGIN"), "", "in no transaction"},
		"a torn event in no transaction":        {newLog().query("BEGIN").cut(1), "", "in no transaction"},
		"a torn event behind a transaction":     {newLog().change(serverA, 1).query("BEGIN").cut(1), a + "1", "follows the end"},
		"an event behind a transaction":         {newLog().change(serverA, 1).query("BEGIN").change(serverA, 2), a + "1", "follows the end"},

		"a transaction that another server has follows one that it does not have": {newLog().change(serverA, 1).change(serverA, 2).change(serverA, 3), a + "1:3", "is not missing, but one before it"},
		"a GTID twice":           {newLog().change(serverA, 1).change(serverA, 1), a + "1", "twice"},
		"a GTID twice in a tail": {newLog().change(serverA, 1).change(serverA, 1), "", "twice"},
		"a previous GTID":        {newLog(source{serverA, []uint64{1, 9}}).change(serverA, 8), a + "1-9", "twice"},
		"GTID number 0":          {newLog().change(serverA, 0), "", "no number"},
		"a negative GTID number": {newLog().change(serverA, 1<<63), "", "no number"},
		"the highest GTID number, which no set can have": {newLog().change(serverA, 1<<63-1), "", "no number"},
		"a short GTID": {newLog().event(kindGTID, make([]byte, 24)), "", "24 bytes"},

		"DDL in the tail":                        {newLog().change(serverA, 1).ddl(serverA, 2), a + "1", "other than BEGIN"},
		"a row change in the tail, then DDL":     {newLog().change(serverA, 1).ddl(serverA, 2), "", "other than BEGIN"},
		"begin in other letters":                 {one().query("begin").rows().xid(), "", "other than BEGIN"},
		"BEGIN WORK":                             {one().query("BEGIN WORK").rows().xid(), "", "other than BEGIN"},
		"a statement without a text":             {one().event(kindQuery, make([]byte, 5)), "", "other than BEGIN"},
		"a statement with too long variables":    {one().event(kindQuery, bytes.Repeat([]byte{0xff}, 20)), "", "other than BEGIN"},
		"BEGIN twice":                            {one().query("BEGIN").query("BEGIN").xid(), "", "other than BEGIN"},
		"a table without transactions":           {one().query("BEGIN").rows().query("COMMIT"), "", "other than BEGIN"},
		"a torn COMMIT":                          {one().query("BEGIN").query("COMMIT").cut(1), "", "other than BEGIN"},
		"a COMMIT with more behind it":           {one().query("BEGIN").query("COMMIT AND CHAIN"), "", "other than BEGIN"},
		"a statement in the tail":                {one().query("BEGIN").query("INSERT INTO t VALUES (1)").xid(), "", "other than BEGIN"},
		"a savepoint in the tail":                {one().query("BEGIN").query("SAVEPOINT s").xid(), "", "other than BEGIN"},
		"variables in the tail":                  {one().query("BEGIN").event(kindIntvar, nil).xid(), "", "type 5"},
		"XA in the tail":                         {one().query("XA START X'61',X'',1").rows(), "", "other than BEGIN"},
		"XA PREPARE in the tail":                 {one().query("BEGIN").rows().event(kindXAPrepare, nil), "", "type 38"},
		"a torn XA PREPARE in the tail":          {one().query("BEGIN").rows().event(kindXAPrepare, nil).cut(1), "", "type 38"},
		"a compressed transaction in the tail":   {one().event(kindPayload, nil), "", "type 40"},
		"old row events in the tail":             {one().query("BEGIN").event(kindWriteRowsV1, nil).xid(), "", "type 23"},
		"LOAD DATA in the tail":                  {one().query("BEGIN").event(kindBeginLoad, nil).xid(), "", "type 17"},
		"rows without BEGIN":                     {one().rows().xid(), "", "type 19"},
		"rows without BEGIN before the tail":     {one().rows().xid(), a + "1", "does not begin with"},
		"an XID without BEGIN":                   {one().xid(), "", "type 16"},
		"an XID of another size":                 {one().query("BEGIN").event(kindXID, make([]byte, 9)), "", "type 16"},
		"rows behind an XID":                     {one().query("BEGIN").xid().rows(), "", "type 19"},
		"a transaction within another":           {one().query("BEGIN").rows().change(serverA, 2), "", "not complete, but another"},
		"a transaction within another, not torn": {one().query("BEGIN").rows().change(serverA, 2), a + "1", "not complete, but another"},
		"a torn transaction within another":      {one().query("BEGIN").rows().gtid(serverA, 2).cut(1), a + "1", "not complete, but another"},

		"another server has the last transaction, which is torn":             {newLog().change(serverA, 1).change(serverA, 2).cut(1), a + "1-2", "another server has it"},
		"another server has the last transaction, which is damaged":          {newLog().change(serverA, 1).flip(6), a + "1", "checksum is wrong"},
		"another server has the last transaction, which has no end":          {one().query("BEGIN").rows(), a + "1", "another server has it"},
		"another server has the last transaction, which has only a GTID":     {one(), a + "1", "another server has it"},
		"another server has the last transaction, whose next header is torn": {one().query("BEGIN").rows().raw(1, 2), a + "1", "another server has it"},
		"another server has the DDL that is torn":                            {newLog().ddl(serverA, 1).cut(1), a + "1", "another server has it"},

		"damage at the end":           {newLog().change(serverA, 1).change(serverA, 2).flip(6), a + "1", "checksum is wrong"},
		"damage in the middle":        {newLog().change(serverA, 1).flip(6).change(serverA, 2), "", "checksum is wrong"},
		"zeros at the end":            {newLog().change(serverA, 1).raw(make([]byte, 30)...), a + "1", "no room"},
		"random data at the end":      {newLog().change(serverA, 1).raw(bytes.Repeat([]byte{0x15}, 30)...), a + "1", "claims to end"},
		"an event larger than any":    {newLog().change(serverA, 1).raw(bytes.Repeat([]byte{0xfe}, 30)...), a + "1", "more than that of any"},
		"an event that is never torn": {newLog().change(serverA, 1).format(inUse, formatOf(1)).cut(1), a + "1", "type 15"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			tail, err := test.log.read(t, test.has)
			if err == nil {
				t.Fatalf("accepted with a tail from %d of %d", tail.From, tail.Size)
			}
			if !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "read binary log: ") {
				t.Errorf("the error is %q, want one with %q", err, test.says)
			}
		})
	}
}

// TestAFileWithPositionsBeyond32BitsIsRefused without a look at it.
func TestAFileWithPositionsBeyond32BitsIsRefused(t *testing.T) {
	t.Parallel()
	_, err := ReadTail(t.Context(), bytes.NewReader(nil), 1<<32+1, parse(t, ""))
	if err == nil || !strings.Contains(err.Error(), "larger") {
		t.Error(err)
	}
}

// TestAFileThatIsShorterThanSaidIsRefused: its end is not a torn event.
func TestAFileThatIsShorterThanSaidIsRefused(t *testing.T) {
	t.Parallel()
	data := newLog().change(serverA, 1).data
	for count := range data {
		_, err := ReadTail(t.Context(), bytes.NewReader(data[:count]), int64(len(data)), parse(t, ""))
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes: %v", count, err)
		}
	}
}

func TestReadingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	data := newLog().change(serverA, 1).data
	if _, err := ReadTail(ctx, bytes.NewReader(data), int64(len(data)), parse(t, "")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// small is a log with DDL and three row changes of two servers.
func small() *log {
	return newLog(source{serverB, []uint64{1, 4}}).ddl(serverA, 1).change(serverA, 2).change(serverB, 4).change(serverA, 3)
}

// hasOf are sets that another server may have of the small log, and the transaction at which the tail begins.
func hasOf() map[string]int {
	return map[string]int{
		serverA + ":1":                       1,
		serverA + ":1-2":                     2,
		serverA + ":1-2," + serverB + ":1-4": 3,
		serverA + ":1-3," + serverB + ":1-4": 4,
	}
}

// TestAFileCutOffAnywhere: a kill can cut off a file at each byte. The tail never begins behind the first missing transaction, and a cut
// through what another server has is refused.
func TestAFileCutOffAnywhere(t *testing.T) {
	t.Parallel()
	l := small()
	for has, first := range hasOf() {
		for count := range l.data {
			tail, err := readData(t, l.data[:count], has)
			missing := len(l.data)
			if first < len(l.starts) {
				missing = l.starts[first]
			}
			mayRead := count >= int(headOf(l)) && (count >= missing || isBoundary(l, count))
			switch {
			case err != nil && count > missing:
				t.Errorf("has %s, %d bytes: only what is missing is cut: %v", has, count, err)
			case err == nil && tail.From > int64(missing):
				t.Errorf("has %s, %d bytes: the tail begins at %d, behind the missing transaction at %d", has, count, tail.From, missing)
			case err == nil && !mayRead && !isBetween(l, count):
				t.Errorf("has %s, %d bytes: accepted although another server has the transaction that is cut", has, count)
			case err == nil && tail.From > int64(count):
				t.Errorf("has %s, %d bytes: the tail begins behind the end", has, count)
			}
		}
	}
}

// isBoundary reports whether a transaction begins at a position.
func isBoundary(l *log, position int) bool {
	return slices.Contains(l.starts, position)
}

// isBetween reports whether a position is in a GTID event: whose transaction begins there is not known.
func isBetween(l *log, position int) bool {
	for _, start := range l.starts {
		size := len(sealed(0, kindGTID, 0, make([]byte, 42)))
		if position > start && position < start+size {
			return true
		}
	}
	return false
}

// TestADamagedByteIsRefused: the checksums cover all bytes except for the magic, which is compared, and the flag that the file is in use.
// No damage looks like a torn event: then the size in its header would not fit the next position in it.
func TestADamagedByteIsRefused(t *testing.T) {
	t.Parallel()
	l := small()
	random := rand.New(rand.NewPCG(1, 2))
	for has := range hasOf() {
		for at := range l.data {
			data := bytes.Clone(l.data)
			data[at] ^= byte(1 + random.IntN(255))
			if tail, err := readData(t, data, has); err == nil {
				t.Fatalf("has %s: byte %d is damaged, and accepted with a tail from %d", has, at, tail.From)
			}
		}
	}
}

// TestManyTransactions: a file with many transactions whose numbers have gaps is read quickly.
func TestManyTransactions(t *testing.T) {
	t.Parallel()
	const count = 20_000 // of each of both servers
	l := newLog()
	for number := range uint64(count) {
		l.change(serverA, 2*number+1).change(serverB, number+1)
	}
	tail, err := l.read(t, serverB+":1-9000000")
	if err == nil {
		t.Fatalf("the tail begins at %d although other servers have transactions behind it", tail.From)
	}
	tail, err = l.read(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if tail.GTIDs.Count() != 2*count || tail.From != tail.Head {
		t.Errorf("%d transactions from %d", tail.GTIDs.Count(), tail.From)
	}
	all := tail.Executed.String()
	if tail, err = l.read(t, all); err != nil || tail.From != tail.Size {
		t.Errorf("the tail begins at %d of %d (%v)", tail.From, tail.Size, err)
	}
}

// TestALogInUseIsToldFromAClosedOne, and from a file that is none.
func TestALogInUseIsToldFromAClosedOne(t *testing.T) {
	t.Parallel()
	closed := (&log{data: []byte(magic)}).format(0, formatOf(algorithmCRC32))
	for name, test := range map[string]struct {
		data []byte
		want bool
		ok   bool
	}{
		"in use":           {newLog().data, true, true},
		"closed":           {closed.data, false, true},
		"encrypted":        {append([]byte{0xfd}, closed.data[1:]...), false, false},
		"torn":             {closed.data[:len(magic)+headerSize-1], false, false},
		"empty":            {nil, false, false},
		"no format at all": {(&log{data: []byte(magic)}).event(kindPrevious, encode()).data, false, false},
	} {
		if got, err := IsInUse(bytes.NewReader(test.data)); got != test.want || (err == nil) != test.ok {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}
