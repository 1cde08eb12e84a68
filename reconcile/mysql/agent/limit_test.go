package agent

import "testing"

// TestTheUsersLimitOfTransactionsStays: mysqld, which nobody has started here, is not even asked.
func TestTheUsersLimitOfTransactionsStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config string
		asked  bool
	}{
		"nothing of it":              {"[mysqld]\nloose_max_binlog_size = 1\n", true},
		"it is the user's":           {"[mysqld]\nmax_binlog_cache_size = 1G\n", false},
		"it is, in another spelling": {"[mysqld]\nloose-max-binlog-cache-size=1G\n", false},
	} {
		layout := newLayout(t)
		a := newAgent(t, layout, memberState())
		write(t, layout.serverConfig(), test.config)
		a.status.Disk.Size = gib
		if err := a.limitTransactions(t.Context()); (err != nil) != test.asked {
			t.Errorf("%s: the limit is set: %v", name, err)
		}
		if err := a.liftTransactionLimit(t.Context()); (err != nil) != test.asked {
			t.Errorf("%s: the limit is lifted: %v", name, err)
		}
	}
}
