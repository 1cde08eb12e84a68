package sizing

import (
	"maps"
	"testing"
)

// TestWhatIsChosenFits: with every connection open and the pool full, a member has enough memory, and its volume has room for data.
func TestWhatIsChosenFits(t *testing.T) {
	t.Parallel()
	for memory := int64(512 * mib); memory < 600*gib; memory += memory / 7 {
		found := poolOf(memory, nil)
		if told := Overcommitted(memory, nil); told != "" {
			t.Error(told)
		}
		if found.size < memory/5 {
			t.Errorf("%d MiB: the pool has %d MiB", memory/mib, found.size/mib)
		}
	}
}

func TestSettingsFollowWhatIsGiven(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given Resources
		want  Settings
	}{
		"nothing known": {Resources{}, Settings{}},
		"half a CPU": {Resources{CPU: 500}, Settings{
			"container_aware": "ON", "innodb_read_io_threads": "2", "innodb_write_io_threads": "2", "innodb_purge_threads": "1",
			"innodb_log_writer_threads": "OFF", "replica_parallel_workers": "4",
		}},
		"64 CPUs": {Resources{CPU: 64000}, Settings{
			"container_aware": "ON", "innodb_read_io_threads": "8", "innodb_write_io_threads": "8", "innodb_purge_threads": "4",
			"innodb_log_writer_threads": "ON", "replica_parallel_workers": "64",
		}},
		"the default volume": {Resources{Volume: gib}, Settings{
			"max_binlog_size": "16777216", "relay_log_space_limit": "134217728", "innodb_max_undo_log_size": "67108864",
			"innodb_redo_log_capacity": "104857600", "innodb_temp_data_file_path": "ibtmp1:12M:autoextend:max:256M",
		}},
		"the smallest volume": {Resources{Volume: 256 * mib}, Settings{
			"max_binlog_size": "16777216", "relay_log_space_limit": "67108864", "innodb_max_undo_log_size": "67108864",
			"innodb_redo_log_capacity": "26214400", "innodb_temp_data_file_path": "ibtmp1:12M:autoextend:max:256M",
		}},
		"a terabyte": {Resources{Volume: 1024 * gib}, Settings{
			"max_binlog_size": "1073741824", "relay_log_space_limit": "137438953472",
			"innodb_max_undo_log_size": "1073741824", "innodb_redo_log_capacity": "104857600", "innodb_temp_data_file_path": "ibtmp1:12M:autoextend:max:131072M",
		}},
	} {
		if got := Tune(test.given); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSettingsOfMemory(t *testing.T) {
	t.Parallel()
	small, large := Tune(Resources{Memory: gib, Volume: 10 * gib}), Tune(Resources{Memory: 16 * gib, Volume: 100 * gib})
	for name, want := range map[string][2]string{
		"innodb_buffer_pool_size":                    {"469762048", "12079595520"},
		"innodb_redo_log_capacity":                   {"117440512", "3019898880"},
		"max_connections":                            {"151", "1365"},
		"table_open_cache":                           {"400", "16000"},
		"binlog_transaction_dependency_history_size": {"131072", "1000000"},
		"temptable_max_ram":                          {"33554432", "536870912"},
		"innodb_log_buffer_size":                     {"16777216", ""},
		"performance_schema_error_size":              {"0", ""},
		"replica_pending_jobs_size_max":              {"67108864", "134217728"},
		"replica_parallel_workers":                   {"8", "64"},
	} {
		if got := [2]string{small[name], large[name]}; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// TestHugeVolumes: InnoDB counts the pages of ibtmp1 in 32 bits. A limit that is a multiple of 2^32 pages would be no limit, or below the
// file's size.
func TestHugeVolumes(t *testing.T) {
	t.Parallel()
	for _, volume := range []int64{64 << 40, 512 << 40, 1 << 50, 1<<63 - 1} {
		if got := Tune(Resources{Volume: volume})["innodb_temp_data_file_path"]; got != "ibtmp1:12M:autoextend:max:1048576M" {
			t.Errorf("a volume of %d TiB: %s", volume>>40, got)
		}
	}
}

// TestHowLargeATransactionMayBe: only the primary has a limit, which its agent sets. An applier with this limit would stop permanently.
func TestHowLargeATransactionMayBe(t *testing.T) {
	t.Parallel()
	for volume, want := range map[int64]int64{0: 0, gib: 256 * mib, 10 * gib: 1280 * mib, 1024 * gib: 4 * gib, 10434699264: 1304334336} {
		if got := TransactionLimit(volume); got != want || got%4096 != 0 {
			t.Errorf("a volume of %d MiB: %d, want %d", volume/mib, got, want)
		}
		if _, set := Tune(Resources{Memory: 4 * gib, CPU: 4000, Volume: volume})["max_binlog_cache_size"]; set {
			t.Error("replicas have a limit, too")
		}
	}
}

// TestWhatTheUserChoosesMeansWhatItSays: none of our settings changes the meaning of the user's settings.
func TestWhatTheUserChoosesMeansWhatItSays(t *testing.T) {
	t.Parallel()
	given := Resources{Memory: 4 * gib, CPU: 4000, Volume: 100 * gib}
	for name, test := range map[string]struct{ config, setting, want string }{
		"none of these settings":                       {"[mysqld]\nmax_connections = 5\n", "innodb_redo_log_capacity", "671088640"},
		"redo logs as before MySQL 8.0.30":             {"[mysqld]\ninnodb_log_file_size = 2G\n", "innodb_redo_log_capacity", ""},
		"the number of redo logs, in another spelling": {"[mysqld]\nloose-innodb-log-files-in-group=3\n", "innodb_redo_log_capacity", ""},
		"as the settings of a plugin":                  {"[mysqld]\nloose_plugin-innodb_log_file_size = 2G\n", "innodb_redo_log_capacity", ""},
		"another setting of a similar name":            {"[mysqld]\ninnodb_log_file_size_of_mine = 2G\n", "innodb_redo_log_capacity", "671088640"},
		"a pool of an odd size":                        {"[mysqld]\nloose_innodb_buffer_pool_size = 1111M\n", "innodb_buffer_pool_chunk_size", "16777216"},
		"the redo log fits the user's pool":            {"[mysqld]\ninnodb_buffer_pool_size = 2G\n", "innodb_redo_log_capacity", "536870912"},
		"no size of the pool":                          {"[mysqld]\ninnodb_buffer_pool_dump_pct = 75\n", "innodb_buffer_pool_chunk_size", "134217728"},
	} {
		if got := TuneWithConfig(given, test.config)[test.setting]; got != test.want {
			t.Errorf("%s: %s is %q, want %q", name, test.setting, got, test.want)
		}
	}
	for config, want := range map[string]string{
		"": "134217728", "max_binlog_size = 8M\n": "134217728", "max_binlog_size = 1G\n": "4294967296", "max_binlog_size = '256M'\n": "1073741824",
		"max_binlog_size = 1G\nloose-max_relay_log_size = 64M\n": "268435456", "max_relay_log_size = 0\nmax_binlog_size = 5T\n": "4294967296",
		"max_binlog_size = 1G\nmax-binlog-size = 16M\n": "134217728",
	} {
		if got := TuneWithConfig(Resources{Volume: gib}, config)["relay_log_space_limit"]; got != want {
			t.Errorf("%q: relay_log_space_limit is %s, want %s", config, got, want)
		}
	}
	if got := TuneWithConfig(Resources{Volume: gib}, "innodb_buffer_pool_size = 1G\n")["innodb_buffer_pool_chunk_size"]; got != "" {
		t.Errorf("the memory is unknown, and innodb_buffer_pool_chunk_size is %s", got)
	}
}

func TestSizesAsMysqldReadsThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"": 0, "128": 128, "16K": 16 << 10, "1g": 1 << 30, "3T": 3 << 40, "G": 0, "1GB": 0, "-1": 0, "1.5G": 0, "1.5T": 0, "1P": 1 << 50, "1E": 1 << 60, "4E": 1 << 62,
		"9999999999T": 1 << 62, "99999999999999999999": 1 << 62, "-99999999999999999999": 0, "'2M'": 2 << 20, `"5"`: 5, "'5": 0,
	} {
		if got := Size(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestConfigOfSettings(t *testing.T) {
	t.Parallel()
	if got, want := (Settings{"b": "2", "a": "1"}).Config(), "[mysqld]\nloose_a = 1\nloose_b = 2\n"; got != want {
		t.Errorf("%q", got)
	}
}
