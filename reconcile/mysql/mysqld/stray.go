package mysqld

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// offlineOn makes mysqld end the sessions of accounts without CONNECTION_ADMIN, and refuse them with error 3032 (manual, "offline_mode").
const offlineOn = "SET GLOBAL offline_mode = ON"

// RefuseClients lets only accounts with CONNECTION_ADMIN log in, unless mysqld runs the statement too late. Among the operator's accounts,
// only the agent's has it.
func (s *Server) RefuseClients(ctx context.Context) error {
	return s.exec(ctx, "refuse clients", "SET GLOBAL offline_mode = IF("+inTime(time.Now())+", 1, @@GLOBAL.offline_mode)")
}

// AdmitClients lets all accounts log in again.
func (s *Server) AdmitClients(ctx context.Context) error {
	return s.exec(ctx, "admit clients", "SET GLOBAL offline_mode = OFF")
}

// EndClients ends the sessions of clients on other hosts, and returns how many. Sessions of the operator's accounts stay.
func (s *Server) EndClients(ctx context.Context) (int, error) {
	one, err := newSession(ctx, s.db)
	if err != nil {
		return 0, fmt.Errorf("look at the sessions: %w", err)
	}
	defer one.Close()
	all, err := one.processes(ctx)
	count := 0
	for _, process := range all {
		if !process.isClient() || process.command == "Killed" {
			continue
		}
		if _, failed := one.ExecContext(ctx, "KILL ?", process.id); failed != nil && !hasNumber(failed, errNoSuchThread) {
			err = errors.Join(err, fmt.Errorf("end session %d: %w", process.id, failed))
			continue
		}
		count++
	}
	return count, err
}

// isClient reports whether a session is that of a client on another host.
func (p process) isClient() bool {
	isOwn := p.user == "system user" || p.user == "unauthenticated user" || strings.HasPrefix(p.user, "mysql_operator_")
	address := parsePeer(p.host).Addr() // mysqld looks up no names
	return !isOwn && address.IsValid() && !address.IsLoopback()
}
