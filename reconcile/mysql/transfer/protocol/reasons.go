package protocol

// The reasons of backups, in the words of status, events, logs, metrics and docs.
const (
	// While a backup has not begun.

	ReasonScheduled             = "Scheduled"             // accepted; nothing prevents it
	ReasonWaitingForCluster     = "WaitingForCluster"     // the cluster creates its first members
	ReasonClusterNotFound       = "ClusterNotFound"       // the MySQLCluster does not exist in the namespace
	ReasonClusterNotReady       = "ClusterNotReady"       // no member is ready
	ReasonCredentialsNotFound   = "CredentialsNotFound"   // the Secret for the destination, or a key of it, is missing
	ReasonEncryptionKeyNotFound = "EncryptionKeyNotFound" // the Secret with the key, or the key, is missing
	ReasonClaimNotFound         = "ClaimNotFound"         // the PersistentVolumeClaim does not exist
	ReasonVolumePending         = "VolumePending"         // the claim has no volume yet
	ReasonNoStorageClass        = "NoDefaultStorageClass" // the claim names no StorageClass, and none is the default
	ReasonUnschedulable         = "Unschedulable"         // no node fits the Pod
	ReasonImagePullFailed       = "ImagePullFailed"       // the node cannot get the operator's image
	ReasonPodsNotCreated        = "PodsNotCreated"        // a quota, a policy or a webhook refuses the Pod

	// While it runs, and when it is over.

	ReasonCopying   = "Copying"
	ReasonDeleting  = "Deleting"
	ReasonCompleted = "Completed"

	// Why an attempt or a whole backup failed.

	ReasonDestinationOccupied    = "DestinationOccupied"    // another backup's folder; never overwritten
	ReasonDestinationFull        = "DestinationFull"        // no space, or a quota
	ReasonDestinationRefused     = "DestinationRefused"     // credentials or permission, a bucket that does not exist, a skewed clock, a certificate that is not trusted
	ReasonDestinationUnavailable = "DestinationUnavailable" // it does not answer, or the connection breaks
	ReasonDonorUnavailable       = "DonorUnavailable"       // no member answers
	ReasonDonorBusy              = "DonorBusy"              // the member gives a copy to another client
	ReasonCopyFailed             = "CopyFailed"             // the copy was interrupted
	ReasonEncryptionKeyInvalid   = "EncryptionKeyInvalid"   // the key is invalid, or not this backup's
	ReasonDeadlineExceeded       = "DeadlineExceeded"       // activeDeadlineSeconds have passed
	ReasonReplaced               = "Replaced"               // the schedule's next backup replaced it
	ReasonInterrupted            = "Interrupted"            // the Pod was stopped
	ReasonPodsFailed             = "PodsFailed"             // Pods end without a reason

	// Restores.

	ReasonBackupNotFound     = "BackupNotFound"     // there is no instance, or no backup at its location
	ReasonBackupNotCompleted = "BackupNotCompleted" // it is still being made
	ReasonBackupFailed       = "BackupFailed"       // its instance failed: there is no backup
	ReasonBackupIncomplete   = "BackupIncomplete"   // no manifest, or a part is missing
	ReasonBackupCorrupt      = "BackupCorrupt"      // a checksum does not match
	ReasonBackupForeign      = "BackupForeign"      // not this operator's, of a newer format, or not the requested backup
	ReasonDataExists         = "DataExists"         // the volume holds data, which is never overwritten
	ReasonVolumeTooSmall     = "VolumeTooSmall"     // the data does not fit
	ReasonVersionMismatch    = "VersionMismatch"    // the MySQL image cannot start this backup's data
	ReasonSettingsMismatch   = "SettingsMismatch"   // the cluster's settings cannot start this backup's data
	ReasonRestoring          = "Restoring"
	ReasonRestoreFailed      = "RestoreFailed"
	ReasonRestoreAdopted     = "RestoreAdopted" // nothing was restored: the volume has newer data that began as this backup
)

// ReasonDataLeft is the event that reports where a deleted instance's data remains.
const ReasonDataLeft = "BackupDataLeft"
