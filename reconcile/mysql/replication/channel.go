package replication

import "time"

// Channel is the default replication channel, as SHOW REPLICA STATUS reports it.
type Channel struct {
	Configured bool
	// SourceHost is the address of the source, SourcePort its port.
	SourceHost string
	SourcePort int
	// ByPosition reports whether the receiver asks for a position in a file instead of the GTIDs that it lacks.
	ByPosition bool
	// IO and SQL are Replica_IO_Running and Replica_SQL_Running: Yes, No, Connecting.
	IO, SQL           string
	IOErrno, SQLErrno int
	IOError, SQLError string
	Retrieved         GTIDSet
	LagSeconds        *int64
	// AckActive reports whether the running receiver negotiated semi-synchronous acknowledgements.
	AckActive bool
	// Received is how much has arrived, if KnowsReceived.
	Received      Received
	KnowsReceived bool
	// QuietFor is for how long this machine has got nothing from the source; 0 if that is not known. mysqld does not know it.
	QuietFor time.Duration
	// RelayLogSpace is the size of the relay log, in bytes. WaitsForRoom means that the receiver waits until some of it is applied.
	RelayLogSpace int64
	WaitsForRoom  bool
}

func (c Channel) running() bool {
	return c.Configured && (c.IO == "Yes" || c.IO == "Connecting" || c.SQL == "Yes")
}

func (c Channel) follows(a Assignment) bool {
	return a.SourceAddress != "" && c.SourceHost == a.SourceAddress && c.SourcePort == a.SourcePort
}

// unapplied reports whether the relay log holds transactions that are not executed yet. CHANGE REPLICATION SOURCE deletes them if neither
// the receiver nor the applier runs.
func (c Channel) unapplied(executed GTIDSet) bool { return !executed.Contains(c.Retrieved) }
