package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyWhatDataFilesRestOnIsTold(t *testing.T) {
	t.Parallel()
	config := map[string]string{"max_connections": "9", "innodb_page_size": "4K", "loose-innodb-page-size": "8K", "lower-case-table-names": "1"}
	want := map[string]string{"innodb_page_size": "8K", "lower_case_table_names": "1"}
	if diff := cmp.Diff(want, DataSettings(config)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
