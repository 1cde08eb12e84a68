package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

const (
	// askingAgain is a commit that changes no data. mysqld only reads the optimizer's cost tables again, here and on replicas. It writes the
	// statement to the binary log (manual, "FLUSH Statement"). Other kinds of FLUSH reset counters, close tables, or wait for InnoDB.
	askingAgain = "FLUSH OPTIMIZER_COSTS"
	// mostAskingAgain is how many of these commits may wait at once. Each occupies a connection, also after its client has gone.
	mostAskingAgain = 3
)

// AskAgain makes a commit that changes no data, in the background, and calls failed if it fails. mysqld (9.7.4) does not ask again for an
// acknowledgement that was lost with a replica's connection. The acknowledgement of a later commit covers all earlier ones.
//
// AskAgain does nothing and reports false if the commit would not help (mayAskAgain).
func (s *Server) AskAgain(ctx context.Context, failed func(error)) (asks bool, err error) {
	const what = "ask again for acknowledgements"
	one, err := newSession(ctx, s.db)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	defer one.Close()
	all, err := one.processes(ctx)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	var connections int
	if err := one.QueryRowContext(ctx, "SELECT @@GLOBAL.max_connections").Scan(&connections); err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	if !mayAskAgain(all, connections) {
		return false, nil
	}
	apart := sql.OpenDB(s.connector)
	asking, err := apart.Conn(ctx)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, errors.Join(err, apart.Close()))
	}
	go func() {
		_, err := asking.ExecContext(context.WithoutCancel(ctx), askingAgain)
		if err := errors.Join(err, asking.Close(), apart.Close()); err != nil {
			failed(fmt.Errorf("%s: %w", what, err))
		}
	}()
	return true, nil
}

// mayAskAgain reports whether one more such commit can help. One that waits was sent to all replicas that connected before it, so another
// helps only if a replica has connected since. The last connections are for clients, and for an administrator.
func mayAskAgain(all []process, connections int) bool {
	var connected, asked int64
	count := 0
	for _, one := range all {
		switch {
		case one.isReceiver():
			connected = max(connected, one.id)
		case one.user == AgentUser && one.info == askingAgain:
			asked = max(asked, one.id)
			count++
		}
	}
	return asked < connected && count < mostAskingAgain && len(all) < connections
}

// isReceiver reports whether a session is that of a connected replica.
func (p process) isReceiver() bool {
	return isReplicationUser(p.user) && strings.HasPrefix(p.command, "Binlog Dump")
}
