package backup

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
)

// Environment is what a program is told and where it finds things: in a Pod by its Job, by hand by flags.
type Environment struct {
	// Namespace, Cluster, Instance and UID are whose backup it is.
	Namespace, Cluster, Instance, UID string
	// URL is the backup's own folder.
	URL string
	// StoreDir is where the volume of a file URL is mounted; empty takes the URL's path as it is.
	StoreDir string
	// CredentialsDir and EncryptionDir hold Secrets as files; empty for none.
	CredentialsDir, EncryptionDir string
	// Checksum is that of the only manifest to accept; empty accepts every one.
	Checksum string
	// Bandwidth is in bytes per second; 0 leaves it to the program.
	Bandwidth int64
	// Port is where the cluster's Services and members listen.
	Port int
	// Layout is where the member's volume and the cluster's certificate are.
	Layout agent.Layout
	// Version is the operator's.
	Version string
	Log     logr.Logger
	// Now is the time.
	Now func() time.Time
}
