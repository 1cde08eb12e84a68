package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// BackupOrder describes a backup to make.
type BackupOrder struct {
	Namespace, Cluster string
	// Instance is the MySQLBackupInstance, UID its UID. The folder at the destination belongs to this instance only.
	Instance, UID string
	// Port is the port of the cluster's Services.
	Port     int32
	Location v1.BackupLocation
	// EncryptionKey is the only key of Location's EncryptionSecret that the Pod gets: KeyRecipient, which is enough to encrypt, or
	// KeyIdentity if the Secret has no public key. Empty means KeyRecipient.
	EncryptionKey string `json:",omitempty"`
	// BandwidthLimit is in bytes per second; 0 means no limit on a replica and mover.DefaultPrimaryLimit on a primary.
	BandwidthLimit int64
	// Deadline bounds all attempts together, in seconds; 0 for no limit.
	Deadline int64
	// Image is the operator's own image.
	Image string `json:"-"`
}

// RestoreOrder describes a backup to restore to one volume.
type RestoreOrder struct {
	Namespace, Cluster string
	// ClusterUID is the UID of the cluster resource.
	ClusterUID string
	Location   v1.BackupLocation
	// BackupUID is the instance's UID, Checksum that of its manifest: the restore refuses any other backup at Location. Both are empty for
	// a restore from a URL, which accepts any backup.
	BackupUID, Checksum string
	// DataClaim is the PersistentVolumeClaim of the first member.
	DataClaim string
	// BandwidthLimit is in bytes per second; 0 for no limit.
	BandwidthLimit int64
	// AdoptOnly accepts a volume to which this backup was restored before, and restores nothing.
	AdoptOnly bool
	// Image is the operator's own image.
	Image string `json:"-"`
	// ServerSettings are the cluster's own settings on which data files depend (DataSettings). The backup's must be the same.
	ServerSettings map[string]string `json:",omitempty"`
	// ServerResources are the resources of the members. With their requests, the Pod gets a node that can run the first member afterwards:
	// the volume may not be able to move to another node.
	ServerResources v1.Resources `json:"-"`
}

// VersionOrder asks a MySQL image for its version and, with Settings, whether its mysqld takes them.
type VersionOrder struct {
	Namespace, Cluster string
	// ClusterUID is the UID of the cluster resource.
	ClusterUID string
	// Image is the operator's own image.
	Image string `json:"-"`
	// ServerImage is the image to ask.
	ServerImage string
	// Settings are the settings to check, as a my.cnf; empty for none.
	Settings string `json:",omitempty"`
}

// NewVersionOrder returns the order that asks a cluster's image for its version. image is the operator's own.
func NewVersionOrder(cluster v1.MySQLCluster, image string) VersionOrder {
	return VersionOrder{Namespace: cluster.Namespace, Cluster: cluster.Name, ClusterUID: string(cluster.UID), Image: image, ServerImage: cluster.Spec.Image}
}

// DeleteOrder describes a backup whose data to delete. The cluster may no longer exist.
type DeleteOrder struct {
	Namespace, Cluster, Instance, UID string
	Location                          v1.BackupLocation
	// UnfinishedOnly deletes only the data of failed attempts. A complete backup stays, even if its instance failed.
	UnfinishedOnly bool `json:",omitempty"`
	// Deadline bounds all attempts together, in seconds; 0 for no limit.
	Deadline int64
	// Image is the operator's own image.
	Image string `json:"-"`
}

// Hash identifies an order; Jobs have it as AnnotationOrder. It does not include what has no effect on the result (the operator's image,
// the resources of members): a change of these does not end a transfer.
func Hash[Order BackupOrder | RestoreOrder | DeleteOrder | VersionOrder](order Order) string {
	content, err := json.Marshal(order)
	if err != nil {
		return "" // unreachable: orders are plain strings and numbers
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:16]
}
