package settings

import (
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T) Table {
	t.Helper()
	table, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestWhatMysqldWouldTake(t *testing.T) {
	t.Parallel()
	const nothing, unsure = "", "?"
	table := read(t)
	for _, test := range []struct{ version, setting, value, want string }{
		{"9.7.4", "max_connections", "500", nothing},
		{"9.7.4-2", "max-connections", "500", nothing},
		{"9.7.4", "loose_max_connections", "500", nothing},
		{"9.7.4", "max_connections", "many", "must be a whole number"},
		{"9.7.4", "max_connections", "0", "must be from 1 to 100000"},
		{"9.7.4", "max_connections", "1000000", "must be from 1 to 100000"},
		{"8.4.6", "max_connections", "1000000", nothing},
		{"9.7.4", "innodb_buffer_pool_size", "4G", nothing},
		{"9.7.4", "innodb_buffer_pool_size", "4 GB", "must be a whole number"},
		{"9.7.4", "innodb_buffer_pool_size", "1M", "must be from 5242880"},
		{"9.7.4", "long_query_time", "0.25", nothing},
		{"9.7.4", "long_query_time", "1s", "must be a number"},
		{"9.7.4", "innodb_print_all_deadlocks", "on", nothing},
		{"9.7.4", "innodb_print_all_deadlocks", "yes", "must be ON or OFF"},
		{"9.7.4", "transaction_isolation", "read-committed", nothing},
		{"9.7.4", "transaction_isolation", "1", nothing},
		{"9.7.4", "transaction_isolation", "9", "must be one of READ-UNCOMMITTED, READ-COMMITTED"},
		{"9.7.4", "transaction_isolation", "READ COMMITTED", "must be one of"},
		{"8.0.43", "transaction_isolation", "READ COMMITTED", unsure},

		// Other forms that mysqld accepts, or may accept.
		{"9.7.4", "max_connections", "'500'", nothing},
		{"9.7.4", "innodb_buffer_pool_size", `"4G"`, nothing},
		{"9.7.4", "local_infile", "'ON'", nothing},
		{"9.7.4", "local_infile", "", unsure},
		{"9.7.4", "transaction_isolation", "'READ-COMMITTED'", nothing},
		{"9.7.4", "transaction_isolation", "SERIAL", unsure},
		{"9.7.4", "long_query_time", ".5", unsure},
		{"9.7.4", "long_query_time", "1e1", unsure},
		{"9.7.4", "innodb_max_dirty_pages_pct", "99.5", nothing},

		// Settings and values that only mysqld knows.
		{"9.7.4", "no_such_setting", "1", unsure},
		{"9.7.4", "sql_mode", "ANSI", unsure},
		{"9.7.4", "thread_pool_size", "4", unsure},
		{"9.7.4", "skip_external_locking", "", unsure},
		{"9.7.4", "maximum_sort_buffer_size", "1M", unsure},

		// Settings that a release does not have.
		{"8.0.41", "innodb_log_file_size", "48M", nothing},
		{"8.4.6", "innodb_log_file_size", "48M", nothing},
		{"9.7.4", "innodb_log_file_size", "48M", "is not a setting of MySQL 9.7.4"},
		{"26.7.0", "innodb_log_file_size", "48M", "is not a setting of MySQL 26.7.0"},
		{"9.7.4", "loose_innodb_log_file_size", "48M", nothing},
		{"9.1.0", "innodb_log_file_size", "48M", unsure},
		{"8.0.41", "expire_logs_days", "3", nothing},
		{"8.4.6", "expire_logs_days", "3", "is not a setting of MySQL 8.4.6"},
		{"8.0.41", "container_aware", "ON", "is not a setting of MySQL 8.0.41"},
		{"9.3.0", "container_aware", "ON", unsure},

		// Releases that the table does not describe: those between described ones have every setting that all described ones have.
		{"9.1.0", "max_connections", "500", nothing},
		{"8.0.26", "max_connections", "500", unsure},
		{"26.10.0", "max_connections", "500", unsure},
		{"", "max_connections", "500", unsure},
		{"", "max_connections", "many", "must be a whole number"},
		{"strange", "max_connections", "500", unsure},

		{"9.7.4", "gtid_purged", "x", "is not a setting that mysqld reads when it starts"},
		{"9.7.4", "loose_gtid_purged", "x", nothing},
	} {
		judged := table.Judge(map[string]string{test.setting: test.value}, test.version)
		got := strings.Join(judged.Faults, "; ")
		if slices.Contains(judged.Unsure, test.setting) {
			got = unsure
		}
		if test.want == nothing && got != nothing || !strings.Contains(got, test.want) {
			t.Errorf("%s = %s in MySQL %q: %q, want %q", test.setting, test.value, test.version, got, test.want)
		}
	}
}

func TestJudgementsComeInOrder(t *testing.T) {
	t.Parallel()
	table, config := read(t), map[string]string{"zz": "1", "aa": "1", "sort_buffer_size": "x", "max_connections": "x", "join_buffer_size": "1M"}
	for range 20 {
		judged := table.Judge(config, "9.7.4")
		if !slices.Equal(judged.Unsure, []string{"aa", "zz"}) || len(judged.Faults) != 2 || !strings.HasPrefix(judged.Faults[0], "max_connections ") {
			t.Fatalf("%+v", judged)
		}
	}
}
