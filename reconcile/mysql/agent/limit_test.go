package agent

import "testing"

// TestTheUsersLimitOfTransactionsStays: the agent does not even connect to mysqld, which is not running here.
func TestTheUsersLimitOfTransactionsStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config string
		asked  bool
	}{
		"not set":                 {"[mysqld]\nloose_max_binlog_size = 1\n", true},
		"set by the user":         {"[mysqld]\nmax_binlog_cache_size = 1G\n", false},
		"set in another spelling": {"[mysqld]\nloose-max-binlog-cache-size=1G\n", false},
	} {
		layout := newLayout(t)
		a := newAgent(t, layout, memberState())
		write(t, layout.serverConfig(), test.config)
		a.status.Disk.Size = gib
		if err := a.limitTransactions(t.Context()); (err != nil) != test.asked {
			t.Errorf("%s: the limit is set: %v", name, err)
		}
		if err := a.liftTransactionLimit(t.Context()); (err != nil) != test.asked {
			t.Errorf("%s: the limit is removed: %v", name, err)
		}
	}
}
