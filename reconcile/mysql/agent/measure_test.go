package agent

import "testing"

// TestHowManyFilesMysqldWants follows the manual's rule for open_files_limit.
func TestHowManyFilesMysqldWants(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config string
		want   int64
	}{
		"no my.cnf":              {"", 0},
		"MySQL's defaults":       {"[mysqld]\n", 8161},
		"few tables":             {"[mysqld]\nloose_table_open_cache = 400\nloose_max_connections = 60\n", 5000},
		"many tables":            {"table-open-cache=16000\nmax_connections = 5461\n", 37471},
		"many connections":       {"max_connections=8000\ntable_open_cache=400\n", 40000},
		"what the user asks for": {"open_files_limit = 100000\n", 100000},
		"the last one counts":    {"loose_max_connections = 8000\nloose_table_open_cache = 400\nmax_connections = 100\n", 5000},
		"MySQL chooses":          {"table_open_cache = 400\nopen_files_limit = 0\n", 5000},
		"more than there can be": {"table_open_cache = 9223372036854775807\n", 10 + 151 + 2*mostAsked},
		"not a plain number":     {"table_open_cache = 4K\n", 8161},
	} {
		if got := wantedFiles(test.config); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
