package sizing

import (
	"strings"
	"testing"
)

func TestWhoAsksForTooMuchIsTold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		memory int64
		asked  Settings
		want   string
	}{
		"no settings":                        {512 * mib, nil, ""},
		"a limit below today's minimum":      {256 * mib, nil, "raise spec.resources.limits.memory"},
		"no limit":                           {0, Settings{settingPool: "8G", "max_connections": "5000"}, ""},
		"what fits":                          {4 * gib, Settings{settingPool: "2G", "max_connections": "500"}, ""},
		"half of a small limit":              {512 * mib, Settings{settingPool: "256M"}, "may need 599 MiB and has 512 MiB"},
		"too many connections":               {gib, Settings{"max_connections": "1000"}, "1000 connections"},
		"more connections than MySQL allows": {gib, Settings{"max_connections": "4096T"}, "100000 connections"},
		"a pool beyond the memory":           {4 * gib, Settings{settingPool: "8G"}, "Lower innodb_buffer_pool_size"},
		"a pool of an absurd size":           {4 * gib, Settings{settingPool: "999999T"}, "Lower innodb_buffer_pool_size"},
		"a pool that is rounded up beyond the memory": {2200 * mib, Settings{settingPool: "1300M", settingInstances: "8", settingChunk: "128M"},
			"a buffer pool of 1300 MiB, which MySQL rounds up to 2048 MiB, to whole chunks"},
		"instances and chunks that fit":                  {2200 * mib, Settings{settingPool: "1G", settingInstances: "8", settingChunk: "128M"}, ""},
		"instances and chunks, and our size of the pool": {2200 * mib, Settings{settingInstances: "8", settingChunk: "128M"}, ""},
		"a packet of the usual size":                     {512 * mib, Settings{"max_allowed_packet": "64M", "key_buffer_size": "8M", "temptable_max_ram": "32M"}, ""},
		"packets of a gigabyte":                          {4 * gib, Settings{"max_allowed_packet": "1G"}, "2880 MiB more because of max_allowed_packet, "},
		"the log buffer of a small member":               {512 * mib, Settings{"innodb_log_buffer_size": "64M"}, "may need 516 MiB and has 512 MiB"},
		"the log buffer of a large member":               {4 * gib, Settings{"innodb_log_buffer_size": "64M"}, ""},
		"each setting fits alone, but not all together": {4 * gib, Settings{"temptable_max_ram": "500M", "replica_pending_jobs_size_max": "400M", "key_buffer_size": "256M"},
			"Lower innodb_buffer_pool_size or max_connections or replica_pending_jobs_size_max or temptable_max_ram or key_buffer_size in spec.config"},
		"one of these settings":           {4 * gib, Settings{"temptable_max_ram": "500M"}, ""},
		"another of these settings":       {4 * gib, Settings{"slave_pending_jobs_size_max": "400M"}, ""},
		"both names of one setting":       {4 * gib, Settings{"slave_pending_jobs_size_max": "400M", "replica_pending_jobs_size_max": "400M"}, ""},
		"workers, by their former name":   {2200 * mib, Settings{"slave_parallel_workers": "256"}, "2160 MiB more because of slave_parallel_workers, "},
		"absurd sizes":                    {4 * gib, Settings{"key_buffer_size": "999999T", "max_allowed_packet": "999999T"}, "raise spec.resources.limits.memory"},
		"room that a smaller pool leaves": {4 * gib, Settings{settingPool: "1G", "temptable_max_ram": "1G"}, ""},
	} {
		got := Overcommitted(test.memory, test.asked)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
