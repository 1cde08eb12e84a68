package replication

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	uuidA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	uuidB = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func gtids(t *testing.T, text string) GTIDSet {
	t.Helper()
	set, err := ParseGTIDSet(strings.NewReplacer("A", uuidA, "B", uuidB).Replace(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestParseGTIDSet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"a new server has none": {"", ""},
		"only white space":      {" \n ", ""},
		"one transaction":       {uuidA + ":1", uuidA + ":1"},
		"a range":               {uuidA + ":1-5", uuidA + ":1-5"},
		"gaps, as after a failed parallel applier":       {uuidA + ":1-5:8:11-20", uuidA + ":1-5:8:11-20"},
		"two servers on two lines, as gtid_executed has": {uuidB + ":1-5,\n" + uuidA + ":7", uuidA + ":7," + uuidB + ":1-5"},
		"intervals that touch are joined":                {uuidA + ":1-5:6-9", uuidA + ":1-9"},
		"intervals that overlap are joined":              {uuidA + ":4-9:1-5", uuidA + ":1-9"},
		"a server named twice":                           {uuidA + ":1," + uuidA + ":2", uuidA + ":1-2"},
		"capitals are the same server":                   {strings.ToUpper(uuidA) + ":1", uuidA + ":1"},
		"a tag, since MySQL 8.3":                         {uuidA + ":backup:1-3", uuidA + ":backup:1-3"},
		"untagged and tagged of one server":              {uuidA + ":1-4:backup:1-3:load:7", uuidA + ":1-4:backup:1-3:load:7"},
		"tags know no capitals":                          {uuidA + ":Backup:1:bACKUP:2", uuidA + ":backup:1-2"},
		"a tag that looks like a word of SQL":            {uuidA + ":_null:1", uuidA + ":_null:1"},
		"the greatest number":                            {uuidA + ":9223372036854775806", uuidA + ":9223372036854775806"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := ParseGTIDSet(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := set.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestParseGTIDSetRefusesWhatMySQLNeverPrints(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"no interval":                       uuidA,
		"an empty interval":                 uuidA + ":",
		"not a UUID":                        "server-one:1",
		"a UUID without dashes":             strings.ReplaceAll(uuidA, "-", "") + "0000:1",
		"number zero":                       uuidA + ":0",
		"a negative number":                 uuidA + ":-3",
		"a descending range":                uuidA + ":5-1",
		"a number beyond 63 bits":           uuidA + ":9223372036854775808",
		"a range up to the greatest number": uuidA + ":1-9223372036854775807",
		"a range with three numbers":        uuidA + ":1-2-3",
		"a tag with a hyphen":               uuidA + ":my-tag:1",
		"a tag outside of ASCII":            uuidA + ":bİckup:1",
		"a tag of 33 characters":            uuidA + ":" + strings.Repeat("t", 33) + ":1",
		"words":                             "not replicating",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := ParseGTIDSet(text)
			if err == nil {
				t.Fatalf("%q was parsed as %q", text, set)
			}
			if !strings.Contains(err.Error(), "parse GTID set") {
				t.Errorf("the error does not say what failed: %v", err)
			}
		})
	}
}

func TestParseOwnedGTIDs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"nothing is in progress":                  {"", ""},
		"one transaction":                         {"A:5#12", "A:5"},
		"several, unsorted":                       {"A:2#9:1#10", "A:1-2"},
		"a tag, right after the thread before it": {"A:2#9:1#10A:load:1#11", "A:1-2:load:1"},
		"two servers":                             {"A:7#123B:1#4", "A:7,B:1"},
		"several threads own one":                 {"A:7#12#13:9#14", "A:7:9"},
		"a thread number that could be a UUID's":  {"A:7#00000000B:1#4", "A:7,B:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseOwnedGTIDs(strings.NewReplacer("A", uuidA, "B", uuidB).Replace(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if !got.Equal(gtids(t, test.want)) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if got, err := ParseOwnedGTIDs("words"); err == nil {
		t.Errorf("words were parsed as %s", got)
	}
}

func TestGTIDSetAlgebra(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ a, b, union, difference string }{
		"nothing and nothing":         {"", "", "", ""},
		"nothing to subtract":         {"A:1-9", "", "A:1-9", "A:1-9"},
		"nothing to subtract from":    {"", "A:1-9", "A:1-9", ""},
		"the same":                    {"A:1-9", "A:1-9", "A:1-9", ""},
		"a hole in the middle":        {"A:1-9", "A:4-5", "A:1-9", "A:1-3:6-9"},
		"a piece of either end":       {"A:3-9", "A:1-3:9-12", "A:1-12", "A:4-8"},
		"a cut across several pieces": {"A:1-3:5-7:9-11", "A:2-10", "A:1-11", "A:1:11"},
		"a replica one behind":        {"A:1-10", "A:1-9", "A:1-10", "A:10"},
		"another server's":            {"A:1-5", "B:1-5", "A:1-5,B:1-5", "A:1-5"},
		"a tag is a separate source": {
			"A:1-5:load:1-5", "A:1-5", "A:1-5:load:1-5", "A:load:1-5",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := gtids(t, test.a), gtids(t, test.b)
			before := a.String() + "|" + b.String()
			if got := a.Union(b); !got.Equal(gtids(t, test.union)) {
				t.Errorf("union: got %s, want %s", got, test.union)
			}
			if got := a.Subtract(b); !got.Equal(gtids(t, test.difference)) {
				t.Errorf("difference: got %s, want %s", got, test.difference)
			}
			if after := a.String() + "|" + b.String(); after != before {
				t.Errorf("the sets themselves changed from %s to %s", before, after)
			}
		})
	}
}

func TestGTIDSetWithoutServerForgetsItsTagsToo(t *testing.T) {
	t.Parallel()
	set := gtids(t, "A:1-4:backup:1-3,B:7")
	if got := set.WithoutServer(strings.ToUpper(uuidA)); !got.Equal(gtids(t, "B:7")) {
		t.Errorf("got %s, want only the other server's", got)
	}
	if set.Count() != 8 {
		t.Errorf("the set has %d transactions, want its 8 untouched", set.Count())
	}
}

func TestTheNextGTIDOfAServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "1", "A:1-5:9": "10", "A:tag:7": "1", "A:2-3:tag:7": "4", "B:1-5": "1"} {
		if got := gtids(t, text).NextOf(strings.ToUpper(uuidA)); got != uuidA+":"+want {
			t.Errorf("after %q: %s, want number %s", text, got, want)
		}
	}
}

func TestGTIDSetTravelsAsText(t *testing.T) {
	t.Parallel()
	type carrier struct {
		Executed GTIDSet `json:"executed"`
	}
	content, err := json.Marshal(carrier{gtids(t, "A:1-4:backup:1,B:7")})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"executed":"` + uuidA + `:1-4:backup:1,` + uuidB + `:7"}`; string(content) != want {
		t.Errorf("got %s, want %s", content, want)
	}
	var back carrier
	if err := json.Unmarshal(content, &back); err != nil {
		t.Fatal(err)
	}
	if !back.Executed.Equal(gtids(t, "A:1-4:backup:1,B:7")) {
		t.Errorf("came back as %s", back.Executed)
	}
	if err := json.Unmarshal([]byte(`{"executed":"nonsense"}`), &back); err == nil {
		t.Error("invalid text was accepted as a set")
	}
}

// FuzzGTIDSet: a parsed set prints so that it parses to the same set, and sets follow the laws of sets.
func FuzzGTIDSet(f *testing.F) {
	f.Add(uuidA+":1-5:8", uuidA+":2,"+uuidB+":1-3")
	f.Add("", uuidA+":backup:1-3")
	f.Add(uuidA+":1-5:backup:2:LOAD:4-9", uuidA+":backup:1-3:9-12, "+strings.ToUpper(uuidB)+":1")
	f.Fuzz(func(t *testing.T, first, second string) {
		a, err := ParseGTIDSet(first)
		if err != nil {
			return
		}
		printed := a.String()
		again, err := ParseGTIDSet(printed)
		if err != nil || !again.Equal(a) || again.String() != printed {
			t.Fatalf("%q prints as %q, which parses as %q (%v)", first, printed, again, err)
		}
		b, err := ParseGTIDSet(second)
		if err != nil {
			return
		}
		checkLaws(t, a, b)
	})
}

func checkLaws(t *testing.T, a, b GTIDSet) {
	t.Helper()
	union, onlyA, onlyB := a.Union(b), a.Subtract(b), b.Subtract(a)
	both := a.Subtract(onlyA)
	laws := map[string]bool{
		"a union does not depend on the order":                union.Equal(b.Union(a)),
		"a union contains both":                               union.Contains(a) && union.Contains(b),
		"a set contains itself and the empty set":             a.Contains(a) && a.Contains(GTIDSet{}),
		"a difference and the subtracted set make the union":  onlyA.Union(b).Equal(union),
		"a difference shares nothing with the subtracted set": onlyA.Subtract(b).Equal(onlyA),
		"what both have does not depend on the order":         both.Equal(b.Subtract(onlyB)),
		"every transaction is counted once":                   union.Count() == onlyA.Count()+onlyB.Count()+both.Count(),
		"a set is empty if it counts none":                    union.Empty() == (union.Count() == 0),
		"a set contains another if the difference is empty":   a.Contains(b) == onlyB.Empty(),
		"equal sets print alike":                              a.Equal(b) == (a.String() == b.String()),
	}
	for law, holds := range laws {
		if !holds {
			t.Errorf("%s: false for %q and %q", law, a, b)
		}
	}
}

// gaps is a set with a gap after every transaction, as a client that sets gtid_next can make it.
func gaps(tb testing.TB, first, count int) GTIDSet {
	tb.Helper()
	var text strings.Builder
	text.WriteString(uuidA)
	for number := range count {
		text.WriteString(":" + strconv.Itoa(first+2*number))
	}
	set, err := ParseGTIDSet(text.String())
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// manyGaps makes a status as large as the operator reads.
const manyGaps = 81_075

// TestSetsWithManyGapsAreQuick: a pass compares the sets of all members, and cannot be interrupted meanwhile.
func TestSetsWithManyGapsAreQuick(t *testing.T) {
	t.Parallel()
	odd, even := gaps(t, 1, manyGaps), gaps(t, 2, manyGaps)
	all := odd.Union(even)
	for name, do := range map[string]func() bool{
		"subtract other transactions": func() bool { return even.Subtract(odd).Equal(even) },
		"subtract from one interval":  func() bool { return all.Subtract(odd).Equal(even) },
		"contains":                    func() bool { return all.Contains(even) && !even.Contains(odd) && !even.Contains(all) },
		"of a server":                 func() bool { return even.OfServer(uuidA).Count() == manyGaps },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now() //nolint:forbidigo // it measures
			if !do() {
				t.Error("the result is wrong")
			}
			if took := time.Since(began); took > time.Second { //nolint:forbidigo // it measures
				t.Errorf("it took %s", took)
			}
		})
	}
}

func BenchmarkSubtract(b *testing.B) {
	odd, even := gaps(b, 1, manyGaps), gaps(b, 2, manyGaps)
	for b.Loop() {
		even.Subtract(odd)
	}
}

// TestSetsAgreeWithPlainOnes compares the operations with those on sets that list every transaction.
func TestSetsAgreeWithPlainOnes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func() (GTIDSet, map[int]bool) {
		text, plain := uuidA, map[int]bool{}
		for range 1 + random.IntN(6) {
			first := 1 + random.IntN(20)
			last := first + random.IntN(5)
			text += fmt.Sprintf(":%d-%d", first, last)
			for number := first; number <= last; number++ {
				plain[number] = true
			}
		}
		set, err := ParseGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return set, plain
	}
	for range 2000 {
		a, plainA := pick()
		b, plainB := pick()
		left := a.Subtract(b)
		contains := true
		for number := 1; number < 30; number++ {
			want := plainA[number] && !plainB[number]
			one, err := ParseGTIDSet(fmt.Sprintf(uuidA+":%d", number))
			if err != nil {
				t.Fatal(err)
			}
			if left.Contains(one) != want {
				t.Fatalf("%s without %s is %s", a, b, left)
			}
			contains = contains && (plainA[number] || !plainB[number])
		}
		if a.Contains(b) != contains {
			t.Fatalf("%s contains %s: %t", a, b, !contains)
		}
		if !left.Union(b).Equal(a.Union(b)) {
			t.Fatalf("%s and %s: %s is left", a, b, left)
		}
	}
}

// TestParseGTIDSetRepeatsLittle: its errors appear in logs and statuses.
func TestParseGTIDSetRepeatsLittle(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{"no set": long, "no interval": uuidA + ":1" + long, "no range": uuidA + ":1-" + long} {
		if _, err := ParseGTIDSet(text); err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: the error has %d bytes", name, len(fmt.Sprint(err)))
		}
	}
}

// TestSubtractionGoesThroughBothSetsOnce: any client that may set GTID_NEXT can make sets of very many intervals. If the time grew with the
// square of their number, this would take minutes.
func TestSubtractionGoesThroughBothSetsOnce(t *testing.T) {
	t.Parallel()
	const intervals = 400_000
	every := func(step int) GTIDSet {
		list := make([]interval, 0, intervals)
		for at := range int64(intervals) {
			list = append(list, interval{first: at*int64(step) + 1, end: at*int64(step) + 2})
		}
		return GTIDSet{intervals: map[gtidSource][]interval{{uuid: "3e11fa47-71ca-11e1-9e33-c80aa9429562"}: list}}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan GTIDSet, 1)
	go func() { done <- every(2).Subtract(every(3)) }()
	var left GTIDSet
	select {
	case left = <-done:
	case <-ctx.Done():
		t.Fatal("it takes more than 20 seconds")
	}
	// 1, 7, 13 … are in both.
	if want := int64(intervals - (2*intervals+5)/6); left.Count() != want {
		t.Errorf("%d are left, want %d", left.Count(), want)
	}
}
