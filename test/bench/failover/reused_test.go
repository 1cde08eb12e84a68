package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// logOf is what mysqlbinlog prints of transactions of one inserted row each: pairs of a GTID and the row.
func logOf(pairs ...string) string {
	var text strings.Builder
	text.WriteString("# The proper term is pseudo_replica_mode\n")
	for i := 0; i < len(pairs); i += 2 {
		text.WriteString("# at 158\nSET @@SESSION.GTID_NEXT= '" + pairs[i] + "'/*!*/;\nBEGIN\n/*!*/;\n")
		if pairs[i+1] != "" {
			text.WriteString("### INSERT INTO `bench`.`written`\n### SET\n###   @1=" + pairs[i+1] + "\n")
		}
		text.WriteString("COMMIT/*!*/;\n")
	}
	text.WriteString("SET @@SESSION.GTID_NEXT= 'AUTOMATIC' /* added by mysqlbinlog */ /*!*/;\nDELIMITER ;\n# End of log file\n")
	return text.String()
}

func TestReusedGTIDs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		logs     []string
		want     []string
		compared int
	}{
		"all members have the same":              {logs: []string{logOf("a:1", "7", "a:2", "8"), logOf("a:1", "7", "a:2", "8")}, compared: 2},
		"a member has no log":                    {logs: []string{logOf("a:1", "7", "a:2", "8"), ""}, compared: 0},
		"a log begins later":                     {logs: []string{logOf("a:1", "7", "a:2", "8"), logOf("a:2", "8")}, compared: 1},
		"the same row, written by two servers":   {logs: []string{logOf("a:1", "7"), logOf("b:1", "7")}, compared: 0},
		"two members have different rows":        {logs: []string{logOf("a:1", "7"), logOf("a:1", "8")}, want: []string{"a:1"}, compared: 1},
		"a member repeats a GTID":                {logs: []string{logOf("a:1", "7", "a:1", "8")}, want: []string{"a:1"}, compared: 0},
		"an empty transaction in place of a row": {logs: []string{logOf("a:1", "7", "b:1", "9"), logOf("a:1", "", "b:1", "9")}, want: []string{"a:1"}, compared: 2},
		"the last transaction of a log":          {logs: []string{logOf("a:1", "7", "a:2", "8"), strings.TrimSuffix(logOf("a:2", "9"), "\n")}, want: []string{"a:2"}, compared: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := newTransactions()
			for ordinal, log := range test.logs {
				if err := all.read(ordinal, strings.NewReader(log)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(all.reused))); diff != "" {
				t.Error(diff)
			}
			if got := all.compared(); got != test.compared {
				t.Errorf("%d GTIDs were compared, want %d", got, test.compared)
			}
		})
	}
}
