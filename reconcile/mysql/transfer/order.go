package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// BackupOrder is one backup to make.
type BackupOrder struct {
	Namespace, Cluster string
	// Instance is the MySQLBackupInstance, UID its identity: the folder at the destination is its own.
	Instance, UID string
	// Port is where the cluster's Services answer.
	Port     int32
	Location v1.BackupLocation
	// EncryptionKey is the key of Location's EncryptionSecret that the Pod is given, and no other: KeyRecipient, which is enough to encrypt,
	// or KeyIdentity where the Secret has no public key. Empty is KeyRecipient.
	EncryptionKey string `json:",omitempty"`
	// BandwidthLimit is in bytes per second; 0 is none on a replica and mover.DefaultPrimaryLimit on a primary.
	BandwidthLimit int64
	// Deadline is how long all attempts together may take, in seconds; 0 is no limit.
	Deadline int64
	// Image is the operator's own.
	Image string `json:"-"`
}

// RestoreOrder is one backup to restore to one volume.
type RestoreOrder struct {
	Namespace, Cluster string
	// ClusterUID is that of the cluster resource.
	ClusterUID string
	Location   v1.BackupLocation
	// BackupUID is the instance's, Checksum that of its manifest: whatever else is found at Location is refused. Empty for a restore from
	// a URL, which takes what there is.
	BackupUID, Checksum string
	// DataClaim is the PersistentVolumeClaim of the first member.
	DataClaim string
	// BandwidthLimit is in bytes per second; 0 is none.
	BandwidthLimit int64
	// AdoptOnly accepts a volume to which this very backup was restored before, and restores nothing.
	AdoptOnly bool
	// Image is the operator's own.
	Image string `json:"-"`
	// ServerSettings are the cluster's own settings that data files rest on (DataSettings): the backup's have to be the same.
	ServerSettings map[string]string `json:",omitempty"`
	// ServerResources are those of the members: with their requests the Pod comes to a node that takes the first member afterwards. The
	// volume may not be able to leave that node.
	ServerResources v1.Resources `json:"-"`
}

// VersionOrder asks a MySQL image for its version and, with Settings, whether its mysqld takes them.
type VersionOrder struct {
	Namespace, Cluster string
	// ClusterUID is that of the cluster resource.
	ClusterUID string
	// Image is the operator's own.
	Image string `json:"-"`
	// ServerImage is the image to ask.
	ServerImage string
	// Settings are those to check, as a my.cnf; empty for none.
	Settings string `json:",omitempty"`
}

// DeleteOrder is one backup whose data is to be deleted. The cluster need not exist any more.
type DeleteOrder struct {
	Namespace, Cluster, Instance, UID string
	Location                          v1.BackupLocation
	// UnfinishedOnly deletes only what failed attempts have left. A backup that is whole, though its instance failed, stays.
	UnfinishedOnly bool `json:",omitempty"`
	// Deadline is how long all attempts together may take, in seconds; 0 is no limit.
	Deadline int64
	// Image is the operator's own.
	Image string `json:"-"`
}

// Hash tells one order from another; Jobs carry it as AnnotationOrder. What is no part of the result (the operator's image, the resources
// of members) is no part of it either: a change of these does not end a transfer.
func Hash[Order BackupOrder | RestoreOrder | DeleteOrder | VersionOrder](order Order) string {
	content, err := json.Marshal(order)
	if err != nil {
		return "" // unreachable: orders are plain strings and numbers
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:16]
}
