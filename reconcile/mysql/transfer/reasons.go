package transfer

// The reasons of backups, in the words of status, events, logs, metrics and docs.
const (
	// While a backup has not begun.

	ReasonScheduled             = "Scheduled"             // accepted; nothing is in its way
	ReasonWaitingForCluster     = "WaitingForCluster"     // the cluster makes its first members
	ReasonClusterNotFound       = "ClusterNotFound"       // there is no such MySQLCluster in the namespace
	ReasonClusterNotReady       = "ClusterNotReady"       // no member serves
	ReasonCredentialsNotFound   = "CredentialsNotFound"   // the Secret for the destination, or a key of it, is missing
	ReasonEncryptionKeyNotFound = "EncryptionKeyNotFound" // the Secret with the key, or the key, is missing
	ReasonClaimNotFound         = "ClaimNotFound"         // the PersistentVolumeClaim does not exist
	ReasonVolumePending         = "VolumePending"         // the claim has no volume yet
	ReasonUnschedulable         = "Unschedulable"         // no node takes the Pod
	ReasonImagePullFailed       = "ImagePullFailed"       // the node cannot get the operator's image

	// While it runs, and when it is over.

	ReasonCopying   = "Copying"
	ReasonDeleting  = "Deleting"
	ReasonCompleted = "Completed"

	// Why an attempt or a whole backup failed.

	ReasonDestinationOccupied    = "DestinationOccupied"    // another backup's folder; never overwritten
	ReasonDestinationFull        = "DestinationFull"        // no space, or a quota
	ReasonDestinationRefused     = "DestinationRefused"     // credentials or permission, a bucket that does not exist, a skewed clock, a certificate that is not trusted
	ReasonDestinationUnavailable = "DestinationUnavailable" // it does not answer, or breaks off
	ReasonDonorUnavailable       = "DonorUnavailable"       // no member answers
	ReasonDonorBusy              = "DonorBusy"              // the member gives a copy to somebody else
	ReasonCopyFailed             = "CopyFailed"             // the copy broke off
	ReasonEncryptionKeyInvalid   = "EncryptionKeyInvalid"   // the key is none, or not this backup's
	ReasonDeadlineExceeded       = "DeadlineExceeded"       // activeDeadlineSeconds are over
	ReasonReplaced               = "Replaced"               // the schedule's next backup took its place
	ReasonInterrupted            = "Interrupted"            // the Pod was told to end
	ReasonPodsFailed             = "PodsFailed"             // Pods end without saying why

	// Restores.

	ReasonBackupNotFound     = "BackupNotFound"     // no instance, or nothing at its place
	ReasonBackupNotCompleted = "BackupNotCompleted" // it is still being made
	ReasonBackupFailed       = "BackupFailed"       // its instance failed: there is no backup
	ReasonBackupIncomplete   = "BackupIncomplete"   // no manifest, or a part is missing
	ReasonBackupCorrupt      = "BackupCorrupt"      // a checksum does not fit
	ReasonBackupForeign      = "BackupForeign"      // not this operator's, of a newer format, or another backup than asked for
	ReasonDataExists         = "DataExists"         // the volume holds data, which is never overwritten
	ReasonVolumeTooSmall     = "VolumeTooSmall"     // the data does not fit
	ReasonVersionMismatch    = "VersionMismatch"    // the MySQL image cannot start this backup's data
	ReasonSettingsMismatch   = "SettingsMismatch"   // the cluster's settings cannot start this backup's data
	ReasonRestoring          = "Restoring"
	ReasonRestoreFailed      = "RestoreFailed"
	ReasonRestoreAdopted     = "RestoreAdopted" // nothing was restored: the volume has newer data that began as this backup
)

// ReasonDataLeft is the event that says where a deleted instance's data remains.
const ReasonDataLeft = "BackupDataLeft"
