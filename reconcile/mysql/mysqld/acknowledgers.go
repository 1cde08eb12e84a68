package mysqld

import (
	"context"
	"fmt"
	"net/netip"
)

// Acknowledgers returns from where replicas are connected that acknowledge commits, and the port to which they are. A replica says so by a
// variable of its session, or by two of them, of the old and the new name (MySQL source, ReplSemiSyncReplica::SlaveRequestDump). Only
// sessions of members count, and one of each: a member that connects again may leave the former session behind.
//
// It reads the threads of receivers one by one. The other way round, performance_schema searches for the thread of each variable of all
// clients. The result is by the members' ordinals.
func (s *Server) Acknowledgers(ctx context.Context) (port uint16, replicas map[int]netip.AddrPort, err error) {
	const what = "look for replicas that acknowledge: %w"
	rows, err := s.db.QueryContext(ctx, `SELECT @@GLOBAL.port, p.USER, p.HOST FROM performance_schema.processlist p
		STRAIGHT_JOIN performance_schema.threads t ON t.PROCESSLIST_ID = p.ID
		STRAIGHT_JOIN performance_schema.user_variables_by_thread v ON v.THREAD_ID = t.THREAD_ID
		WHERE p.USER LIKE ? AND p.COMMAND LIKE 'Binlog Dump%'
		AND v.VARIABLE_NAME IN ('rpl_semi_sync_replica', 'rpl_semi_sync_slave') AND v.VARIABLE_VALUE = '1' ORDER BY p.ID`, replicationUsersLike)
	if err != nil {
		return 0, nil, fmt.Errorf(what, err)
	}
	defer rows.Close()
	replicas = map[int]netip.AddrPort{}
	for rows.Next() {
		var user, host string
		if err := rows.Scan(&port, &user, &host); err != nil {
			return 0, nil, fmt.Errorf(what, err)
		}
		member, ok := ordinalOf(user)
		delete(replicas, member)
		if peer := parsePeer(host); ok && peer.IsValid() {
			replicas[member] = peer
		}
	}
	if err := rows.Err(); err != nil {
		return 0, nil, fmt.Errorf(what, err)
	}
	return port, replicas, nil
}
