package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// SetReadOnly refuses writes of every client, also of those with CONNECTION_ADMIN (manual, "super_read_only"). It waits for
// commits under way.
func (s *Server) SetReadOnly(ctx context.Context) error {
	if err := s.execApart(ctx, "SET GLOBAL super_read_only = ON"); err != nil {
		return fmt.Errorf("set super_read_only: %w", err)
	}
	return nil
}

// AcceptWrites lets clients write, if commits wait for so many acknowledgements. It looks and opens on one connection: a mysqld that
// started anew since somebody else looked enforces nothing, and must not be opened.
func (s *Server) AcceptWrites(ctx context.Context, acks int) error {
	one, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("accept writes: %w", err)
	}
	defer one.Close()
	var enforced int
	row := one.QueryRowContext(ctx, "SELECT IF(@@GLOBAL.rpl_semi_sync_source_enabled, @@GLOBAL.rpl_semi_sync_source_wait_for_replica_count, 0)")
	if err := row.Scan(&enforced); err != nil {
		return fmt.Errorf("accept writes: %w", err)
	}
	if enforced < acks {
		return fmt.Errorf("accept writes: commits wait for %d acknowledgements, %d are asked for; looks again", enforced, acks)
	}
	// Clearing read_only clears super_read_only with it (manual, "super_read_only").
	if _, err := one.ExecContext(ctx, "SET GLOBAL read_only = OFF"); err != nil {
		return fmt.Errorf("accept writes: %w", err)
	}
	return nil
}

// LimitTransactions bounds what one transaction may write to the binary log, in bytes, for connections and appliers that begin from now on
// (manual, "max_binlog_cache_size"). A larger one fails with error 1197. 0 lifts the bound.
func (s *Server) LimitTransactions(ctx context.Context, limit int64) error {
	value := "DEFAULT" // MySQL's own, whatever a file says
	if limit > 0 {
		value = strconv.FormatInt(limit, 10)
	}
	return s.exec(ctx, "limit the size of transactions", "SET GLOBAL max_binlog_cache_size = "+value)
}

// StopReplica stops receiving and applying.
func (s *Server) StopReplica(ctx context.Context) error {
	return s.exec(ctx, "stop replica", "STOP REPLICA")
}

// StopReceiver stops receiving and goes on applying what was received.
func (s *Server) StopReceiver(ctx context.Context) error {
	return s.exec(ctx, "stop receiver", "STOP REPLICA IO_THREAD")
}

// ApplyReceived applies what was received, without receiving more.
func (s *Server) ApplyReceived(ctx context.Context) error {
	return s.exec(ctx, "start applier", "START REPLICA SQL_THREAD")
}

// StartReplica starts receiving and applying, whatever of the two does not run. The receiver keeps the account's password in memory, also
// to connect again, until it stops (manual, "START REPLICA Statement").
func (s *Server) StartReplica(ctx context.Context, account Account) error {
	return s.startAs(ctx, "START REPLICA", account)
}

// RestartReceiver makes the receiver connect anew, which is when it negotiates acknowledgements.
func (s *Server) RestartReceiver(ctx context.Context, account Account) error {
	if err := s.exec(ctx, "restart receiver", "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	return s.startAs(ctx, "START REPLICA IO_THREAD", account)
}

// startAs starts the receiver with an account's password.
func (s *Server) startAs(ctx context.Context, statement string, account Account) error {
	if _, err := s.db.ExecContext(ctx, statement+" USER = ? PASSWORD = ?", account.User, account.Password); err != nil {
		return fmt.Errorf("%s: %w", strings.ToLower(statement), err)
	}
	return nil
}

// ForgetSource removes the replication channel with its relay logs; call it only once everything received is applied.
func (s *Server) ForgetSource(ctx context.Context) error {
	return s.exec(ctx, "forget source", "STOP REPLICA", "RESET REPLICA ALL")
}

// EnforceAcks makes every commit wait until so many replicas have acknowledged that they received it (AFTER_SYNC; manual,
// "Semisynchronous Replication"). It never falls back to asynchronous by itself: the time-out in the configuration is 49 days.
func (s *Server) EnforceAcks(ctx context.Context, acks int) error {
	if _, err := s.db.ExecContext(ctx, "SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = ?", acks); err != nil {
		return fmt.Errorf("enforce %d acknowledgements: %w", acks, err)
	}
	return s.exec(ctx, "enforce acknowledgements", "SET GLOBAL rpl_semi_sync_source_enabled = ON")
}

// StopEnforcingAcks lets commits go on without acknowledgements, also those that wait now.
func (s *Server) StopEnforcingAcks(ctx context.Context) error {
	return s.exec(ctx, "stop enforcing acknowledgements", "SET GLOBAL rpl_semi_sync_source_enabled = OFF")
}

// StartAcknowledging turns a replica's acknowledgements on; they begin when its receiver connects next.
func (s *Server) StartAcknowledging(ctx context.Context) error {
	return s.exec(ctx, "start acknowledging", "SET GLOBAL rpl_semi_sync_replica_enabled = ON")
}

// StopAcknowledging turns a replica's acknowledgements off for certain: the running receiver would go on giving them until it
// stops.
func (s *Server) StopAcknowledging(ctx context.Context) error {
	return s.exec(ctx, "stop acknowledging", "STOP REPLICA IO_THREAD", "SET GLOBAL rpl_semi_sync_replica_enabled = OFF")
}

// Certificates are the files that mysqld uses when it is a client of another member.
type Certificates struct{ CA, Certificate, Key string }

// Source is where and how a replica reaches its primary.
type Source struct {
	Host         string
	Port         int
	Account      Account
	Certificates Certificates
}

// PointToSource sets the replication channel up: by GTID, over TLS with the primary's name verified, retrying every second for
// ever (manual, "CHANGE REPLICATION SOURCE TO Statement"). The channel must be stopped. The password is not part of it, because it would
// be stored in a table in clear; one that an earlier release stored is removed. StartReplica gives it.
func (s *Server) PointToSource(ctx context.Context, source Source) error {
	_, err := s.db.ExecContext(ctx, `CHANGE REPLICATION SOURCE TO SOURCE_HOST = ?, SOURCE_PORT = ?, SOURCE_USER = ?, SOURCE_PASSWORD = '',
		SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 1, SOURCE_SSL_CA = ?, SOURCE_SSL_CERT = ?, SOURCE_SSL_KEY = ?, SOURCE_SSL_VERIFY_SERVER_CERT = 1,
		SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 0, SOURCE_HEARTBEAT_PERIOD = 2`,
		source.Host, source.Port, source.Account.User,
		source.Certificates.CA, source.Certificates.Certificate, source.Certificates.Key)
	if err != nil {
		return fmt.Errorf("point to source %s:%d: %w", source.Host, source.Port, err)
	}
	return nil
}

// Clone replaces this server's data by a copy of the donor's and stops mysqld, which kubelet starts again (manual, "Cloning Remote
// Data"). The caller has made certain that nothing is only here. The donor is read with at most limit bytes per second, in whole MiB.
func (s *Server) Clone(ctx context.Context, donor Source, limit int64) error {
	settings := []struct {
		statement string
		value     any
	}{
		{"SET GLOBAL clone_max_data_bandwidth = ?", max(1, limit>>20)},
		{"SET GLOBAL clone_valid_donor_list = ?", fmt.Sprintf("%s:%d", donor.Host, donor.Port)},
		{"SET GLOBAL clone_ssl_ca = ?", donor.Certificates.CA},
		{"SET GLOBAL clone_ssl_cert = ?", donor.Certificates.Certificate},
		{"SET GLOBAL clone_ssl_key = ?", donor.Certificates.Key},
	}
	for _, setting := range settings {
		if _, err := s.db.ExecContext(ctx, setting.statement, setting.value); err != nil {
			return fmt.Errorf("prepare to clone %s: %w", donor.Host, err)
		}
	}
	replace := func() error {
		_, err := s.db.ExecContext(ctx, "CLONE INSTANCE FROM ?@?:? IDENTIFIED BY ? REQUIRE SSL",
			donor.Account.User, donor.Host, donor.Port, donor.Account.Password)
		if hasNumber(err, errRestartFailed) {
			return nil
		}
		return err
	}
	err := replace()
	if hasNumber(err, errOptionPrevents) {
		err = s.beyondReadOnly(ctx, replace)
	}
	if err != nil {
		return fmt.Errorf("clone %s: %w", donor.Host, err)
	}
	return nil
}

// beyondReadOnly does what super_read_only forbids, as CLONE where people have tables (seen on 9.7.4): it drops them first. read_only
// stays, so that only accounts with CONNECTION_ADMIN could write meanwhile, to what is about to be replaced. If it succeeds mysqld ends,
// and starts read-only.
func (s *Server) beyondReadOnly(ctx context.Context, act func() error) error {
	if err := s.exec(ctx, "lift super_read_only", "SET GLOBAL super_read_only = OFF"); err != nil {
		return err
	}
	err := act()
	if err == nil {
		return nil
	}
	again, cancel := context.WithTimeout(context.WithoutCancel(ctx), loginTimeout)
	defer cancel()
	return errors.Join(err, s.SetReadOnly(again))
}

// ReloadTLS makes mysqld use the certificate files as they are now, for new connections.
func (s *Server) ReloadTLS(ctx context.Context) error {
	return s.exec(ctx, "reload TLS", "ALTER INSTANCE RELOAD TLS")
}

// SetPassword gives an account a new password. The binary log and the general log hold its hash only (manual, "Passwords and
// Logging").
//
// Call it, and SetOwnPassword, only while enough replicas acknowledge. mysqld holds the lock of its privilege tables until the statement is
// acknowledged, and meanwhile nobody can log in, also no replica that would acknowledge it.
func (s *Server) SetPassword(ctx context.Context, user, host, password string) error {
	err := s.execApart(ctx, "ALTER USER ?@? IDENTIFIED BY ?", user, host, password)
	if hasNumber(err, errCannotUser) {
		return fmt.Errorf("the account %s@%s does not exist: create it, or set spec.root: Absent: %w", user, host, err)
	}
	if err != nil {
		return fmt.Errorf("set the password of %s@%s: %w", user, host, err)
	}
	return nil
}

// SetOwnPassword gives one of the operator's own accounts a new password, as its hash: people's password policy does not apply to it.
func (s *Server) SetOwnPassword(ctx context.Context, user, password string) error {
	statement, err := alterOwn(user, password)
	if err != nil {
		return err
	}
	if err := s.execApart(ctx, statement); err != nil {
		return fmt.Errorf("set the password of %s: %w", user, err)
	}
	return nil
}

// SetOwnPasswordHere does so on this server alone, without the binary log: it waits for nobody. Replicas get to know the password by
// SetOwnPassword, later.
func (s *Server) SetOwnPasswordHere(ctx context.Context, user, password string) error {
	statement, err := alterOwn(user, password)
	if err != nil {
		return err
	}
	apart := sql.OpenDB(s.connector)
	defer apart.Close()
	one, err := apart.Conn(ctx)
	if err != nil {
		return fmt.Errorf("set the password of %s here: %w", user, err)
	}
	defer one.Close()
	for _, statement := range []string{"SET SESSION sql_log_bin = 0", statement} {
		if _, err := one.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("set the password of %s here: %w", user, err)
		}
	}
	return nil
}

func alterOwn(user, password string) (string, error) {
	for _, account := range ownAccounts() {
		if account.user != user {
			continue
		}
		hash, err := hashed(password)
		if err != nil {
			return "", fmt.Errorf("set the password of %s: %w", user, err)
		}
		return "ALTER USER " + account.name() + " " + identifiedAs + hash, nil
	}
	return "", fmt.Errorf("%s is not an account of the operator's", user)
}

// Ping says whether mysqld answers and takes the account's password.
func (s *Server) Ping(ctx context.Context) error { return s.db.PingContext(ctx) }
