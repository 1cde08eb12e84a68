package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// Observed is the state of a mysqld that one call of Observe reads.
type Observed struct {
	Server  replication.Server
	Version string
	// AskedAcks is how many acknowledgements commits wait for as the variables say, certain or not.
	AskedAcks int
	// AckClients is how many acknowledging replicas are connected. The agent lowers it to those that do acknowledge; Connected stays.
	AckClients, Connected int
	// AcksSwitchedOff is how often acknowledgements were switched off since mysqld's start, or since FLUSH STATUS.
	AcksSwitchedOff int64
	// CommitsWait reports whether a commit waits for acknowledgements.
	CommitsWait bool
	// SyncsRelayLog reports whether the receiver flushes the relay log for each transaction, before it acknowledges it.
	SyncsRelayLog bool
	// CommitDelay is binlog_group_commit_sync_delay.
	CommitDelay time.Duration
	// LoginsHang reports whether no client can log in: a statement about accounts waits for an acknowledgement and holds the lock of the
	// privilege tables. A replica that would acknowledge it cannot connect either. This ends when acknowledgements are no longer enforced,
	// or with a restart.
	LoginsHang bool
	// RefusesClients reports whether only accounts with CONNECTION_ADMIN can log in (RefuseClients).
	RefusesClients bool
}

// EnoughAcknowledge reports whether enough acknowledging replicas are connected for a commit to return.
func (o Observed) EnoughAcknowledge() bool { return o.AckClients >= o.AskedAcks }

// loginTimeout bounds the login that shows whether clients can log in, which takes some milliseconds. It is shorter than the time for one
// look.
const loginTimeout = 2 * time.Second

// Observe reads everything that decisions about a member depend on.
func (s *Server) Observe(ctx context.Context) (Observed, error) {
	seen := Observed{}
	status, err := s.semiSyncStatus(ctx) // before what mysqld has executed (replication.AcksLook)
	if err != nil {
		return seen, err
	}
	if err := s.observeVariables(ctx, &seen); err != nil {
		return seen, err
	}
	channel, err := s.observeChannel(ctx)
	if err != nil {
		return seen, err
	}
	if status["Rpl_semi_sync_source_status"] != "ON" {
		seen.Server.SourceAcks = 0 // MySQL has switched it off by itself
	}
	channel.AckActive = status["Rpl_semi_sync_replica_status"] == "ON"
	seen.AckClients, _ = strconv.Atoi(status["Rpl_semi_sync_source_clients"])
	seen.AcksSwitchedOff, _ = strconv.ParseInt(status["Rpl_semi_sync_source_no_times"], 10, 64)
	seen.Connected = seen.AckClients
	seen.Server.Channel = channel
	// A replica that hangs still counts as acknowledging, so the number of clients does not show whether commits wait.
	seen.CommitsWait = status["Rpl_semi_sync_source_wait_sessions"] != "0"
	seen.LoginsHang = seen.CommitsWait && s.lockedOut(ctx)
	return seen, nil
}

func (s *Server) lockedOut(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	return apart.PingContext(bounded) != nil && bounded.Err() != nil
}

func (s *Server) observeVariables(ctx context.Context, seen *Observed) error {
	var owned, executed, purged string
	var certain bool
	var delay int64
	row := s.db.QueryRowContext(ctx, `SELECT @@GLOBAL.read_only AND @@GLOBAL.super_read_only, @@GLOBAL.read_only, @@GLOBAL.server_uuid, @@GLOBAL.version,
		@@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged, @@GLOBAL.rpl_semi_sync_source_timeout = `+SemiSyncTimeout+`
			AND @@GLOBAL.rpl_semi_sync_source_wait_point = 'AFTER_SYNC' AND @@GLOBAL.rpl_semi_sync_source_wait_no_replica,
		IF(@@GLOBAL.rpl_semi_sync_source_enabled, @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count, 0), @@GLOBAL.rpl_semi_sync_replica_enabled,
		CAST(LEAST(@@GLOBAL.relay_log_space_limit, 9223372036854775807) AS SIGNED), @@GLOBAL.sync_relay_log = 1, @@GLOBAL.binlog_group_commit_sync_delay,
		@@GLOBAL.offline_mode`)
	server := &seen.Server
	err := row.Scan(&server.SuperReadOnly, &server.ReadOnly, &server.ServerUUID, &seen.Version, &owned, &executed, &purged, &certain, &seen.AskedAcks, &server.ReplicaAcks,
		&server.RelayLogLimit, &seen.SyncsRelayLog, &delay, &seen.RefusesClients)
	if err != nil {
		return fmt.Errorf("read variables: %w", err)
	}
	seen.CommitDelay = time.Duration(delay) * time.Microsecond
	server.SourceEnabled = seen.AskedAcks > 0
	if certain {
		server.SourceAcks = seen.AskedAcks
	}
	if server.Pending, err = replication.ParseOwnedGTIDs(owned); err != nil {
		return fmt.Errorf("gtid_owned: %w", err)
	}
	return parseSets(executed, purged, &server.Executed, &server.Purged)
}

func parseSets(executed, purged string, executedSet, purgedSet *replication.GTIDSet) error {
	var err error
	if *executedSet, err = replication.ParseGTIDSet(executed); err != nil {
		return fmt.Errorf("gtid_executed: %w", err)
	}
	if *purgedSet, err = replication.ParseGTIDSet(purged); err != nil {
		return fmt.Errorf("gtid_purged: %w", err)
	}
	return nil
}

func (s *Server) observeChannel(ctx context.Context) (replication.Channel, error) {
	columns, err := s.oneRow(ctx, "SHOW REPLICA STATUS")
	if err != nil || columns == nil {
		return replication.Channel{IO: "No", SQL: "No"}, err
	}
	channel := replication.Channel{
		Configured: true,
		SourceHost: columns["Source_Host"], ByPosition: columns["Auto_Position"] != "1",
		IO: columns["Replica_IO_Running"], SQL: columns["Replica_SQL_Running"],
		IOError: columns["Last_IO_Error"], SQLError: columns["Last_SQL_Error"],
	}
	channel.SourcePort, _ = strconv.Atoi(columns["Source_Port"])
	channel.IOErrno, _ = strconv.Atoi(columns["Last_IO_Errno"])
	channel.SQLErrno, _ = strconv.Atoi(columns["Last_SQL_Errno"])
	if lag, err := strconv.ParseInt(columns["Seconds_Behind_Source"], 10, 64); err == nil {
		channel.LagSeconds = &lag
	}
	channel.RelayLogSpace, _ = strconv.ParseInt(columns["Relay_Log_Space"], 10, 64)
	channel.Received = replication.Received{
		Source: channel.SourceHost, File: columns["Source_Log_File"], Position: columns["Read_Source_Log_Pos"], RelayLogSpace: channel.RelayLogSpace,
	}
	if channel.Received.Heartbeats, channel.KnowsReceived, err = s.heartbeats(ctx); err != nil {
		return channel, err
	}
	channel.WaitsForRoom = waitsForRoom(columns["Replica_IO_State"])
	channel.Retrieved, err = replication.ParseGTIDSet(columns["Retrieved_Gtid_Set"])
	return channel, err
}

// heartbeats counts the heartbeats that the receiver has got. It is not known if performance_schema is off.
func (s *Server) heartbeats(ctx context.Context) (count int64, known bool, err error) {
	row := s.db.QueryRowContext(ctx, "SELECT COUNT_RECEIVED_HEARTBEATS FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = ''")
	switch err := row.Scan(&count); {
	case errors.Is(err, sql.ErrNoRows):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("count heartbeats: %w", err)
	}
	return count, true, nil
}

// waitsForRoom reports whether the receiver waits because the relay log has reached relay_log_space_limit. All releases' texts match:
// "Waiting for the replica SQL thread to free relay log space", or "slave" and "enough" in older ones.
func waitsForRoom(state string) bool {
	return strings.Contains(state, "SQL thread to free") && strings.Contains(state, "relay log space")
}

// oneRow reads the first row of a statement whose columns differ between releases; nil if there is no row.
func (s *Server) oneRow(ctx context.Context, statement string) (map[string]string, error) {
	rows, err := s.db.QueryContext(ctx, statement)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	row, err := scanRow(rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	return row, rows.Err()
}

// scanRow reads a row by the names of its columns. NULL becomes "".
func scanRow(rows *sql.Rows) (map[string]string, error) {
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(names))
	targets := make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return nil, err
	}
	row := make(map[string]string, len(names))
	for i, name := range names {
		row[name] = values[i].String
	}
	return row, nil
}

func (s *Server) semiSyncStatus(ctx context.Context) (map[string]string, error) {
	rows, err := s.db.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Rpl_semi_sync_replica_status', 'Rpl_semi_sync_source_status', 'Rpl_semi_sync_source_clients', 'Rpl_semi_sync_source_wait_sessions', 'Rpl_semi_sync_source_no_times')")
	if err != nil {
		return nil, fmt.Errorf("read semi-synchronous status: %w", err)
	}
	defer rows.Close()
	status := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, fmt.Errorf("read semi-synchronous status: %w", err)
		}
		status[name] = value
	}
	return status, rows.Err()
}

// ObserveSource reads the state of a primary for one of its replicas.
func (s *Server) ObserveSource(ctx context.Context) (replication.Source, error) {
	var owned, executed, purged string
	source := replication.Source{}
	row := s.db.QueryRowContext(ctx, "SELECT COALESCE(@@GLOBAL.report_host, ''), @@GLOBAL.super_read_only, @@GLOBAL.server_uuid, @@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
	err := row.Scan(&source.Host, &source.IsClosed, &source.ServerUUID, &owned, &executed, &purged)
	if err != nil {
		return source, fmt.Errorf("look at the primary: %w", err)
	}
	if source.Pending, err = replication.ParseOwnedGTIDs(owned); err != nil {
		return source, fmt.Errorf("gtid_owned: %w", err)
	}
	return source, parseSets(executed, purged, &source.Executed, &source.Purged)
}

// CloneProgress returns how much of a running copy has arrived, in percent; nil if no copy runs.
func (s *Server) CloneProgress(ctx context.Context) (*int, error) {
	var estimate, data sql.NullInt64
	row := s.db.QueryRowContext(ctx, "SELECT SUM(ESTIMATE), SUM(DATA) FROM performance_schema.clone_progress WHERE STATE <> 'Not Started'")
	if err := row.Scan(&estimate, &data); err != nil {
		return nil, fmt.Errorf("read clone progress: %w", err)
	}
	if !estimate.Valid || estimate.Int64 == 0 {
		return nil, nil //nolint:nilnil // no copy runs: there is no progress, and nothing wrong
	}
	percent := int(min(100, data.Int64*100/estimate.Int64))
	return &percent, nil
}

// CopyCompleted reports whether this data directory is the result of a successful CLONE. MySQL keeps that information in the data directory
// (manual, "Monitoring Cloning Operations").
func (s *Server) CopyCompleted(ctx context.Context) (bool, error) {
	var completed int
	row := s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM performance_schema.clone_status WHERE STATE = 'Completed' AND ERROR_NO = 0")
	if err := row.Scan(&completed); err != nil {
		return false, fmt.Errorf("read clone status: %w", err)
	}
	return completed > 0, nil
}
