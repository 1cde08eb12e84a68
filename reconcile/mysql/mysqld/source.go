package mysqld

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// receiverOptions are those that a channel may change while its applier runs: the source, TLS with the cluster's CA, a retry every second
// without limit (manual, "CHANGE REPLICATION SOURCE TO Statement"). MySQL compares no name with the certificate: the host is an IP address,
// and all members share one certificate of a CA that the operator makes for each cluster. The password is not among them, because mysqld
// would store it in clear text in a table. The receiver gets it when it starts.
const receiverOptions = `SOURCE_HOST = ?, SOURCE_PORT = ?, SOURCE_USER = ?, SOURCE_PASSWORD = '',
	SOURCE_SSL = 1, SOURCE_SSL_CA = ?, SOURCE_SSL_CERT = ?, SOURCE_SSL_KEY = ?, SOURCE_SSL_VERIFY_SERVER_CERT = 0,
	SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 0, SOURCE_HEARTBEAT_PERIOD = 0.2`

// PointToSource sets up the replication channel, by GTID. The channel must be stopped. MySQL deletes its relay log.
func (s *Server) PointToSource(ctx context.Context, source Source) error {
	return s.changeSource(ctx, "SOURCE_AUTO_POSITION = 1, "+receiverOptions, source)
}

// checkTimeout bounds the look at what is left after the source of a channel has changed.
const checkTimeout = 2 * time.Second

// TurnToSource makes a running channel receive from another source. It keeps what the channel has received, if the applier runs: otherwise,
// MySQL deletes the relay log without an error (seen on 9.7.4). An applier may fail, or mysqld may end, in that very moment. So
// TurnToSource calls atRisk first, and does nothing if that fails. It returns a ReceivedLostError if something is missing afterwards, or if
// it cannot tell.
func (s *Server) TurnToSource(ctx context.Context, source Source, atRisk func() error) error {
	if err := s.StopReceiver(ctx); err != nil {
		return err
	}
	before, err := s.observeChannel(ctx)
	if err != nil {
		return err
	}
	if before.SQL != "Yes" {
		return fmt.Errorf("set the replication source %s:%d: the applier does not run (error %d: %s)", source.Host, source.Port, before.SQLErrno, before.SQLError)
	}
	if err := atRisk(); err != nil {
		return err
	}
	if err := s.turn(ctx, source, before.Retrieved); err != nil {
		return err
	}
	return s.startAs(ctx, "START REPLICA IO_THREAD", source.Account)
}

// turn changes the source of a channel that has received transactions.
func (s *Server) turn(ctx context.Context, source Source, received replication.GTIDSet) error {
	if err := s.changeSource(ctx, receiverOptions, source); err != nil {
		return &ReceivedLostError{source.Host, err} // mysqld may still carry it out, or may have carried out a half of it
	}
	checking, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	left, err := s.received(checking)
	if err != nil {
		return &ReceivedLostError{source.Host, err}
	}
	if !left.Contains(received) {
		return &ReceivedLostError{source.Host, fmt.Errorf("mysqld has deleted %s", received.Subtract(left))}
	}
	return nil
}

// received returns what this server has received or executed.
func (s *Server) received(ctx context.Context) (replication.GTIDSet, error) {
	channel, err := s.observeChannel(ctx)
	if err != nil {
		return replication.GTIDSet{}, err
	}
	own, err := s.ObserveSource(ctx)
	return channel.Retrieved.Union(own.Executed), err
}

func (s *Server) changeSource(ctx context.Context, options string, source Source) error {
	_, err := s.db.ExecContext(ctx, "CHANGE REPLICATION SOURCE TO "+options, source.Host, source.Port, source.Account.User,
		source.Certificates.CA, source.Certificates.Certificate, source.Certificates.Key)
	if err != nil {
		return fmt.Errorf("set the replication source %s:%d: %w", source.Host, source.Port, err)
	}
	return nil
}

// ReceivedLostError reports that mysqld may have deleted transactions that it had received, and not applied.
type ReceivedLostError struct {
	Source string
	Cause  error
}

func (e *ReceivedLostError) Error() string {
	return "transactions that this member had received may be lost, because its replication source changed to " + e.Source + ": " + e.Cause.Error()
}
