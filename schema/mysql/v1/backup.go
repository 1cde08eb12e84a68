package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MySQLBackupSchedule creates MySQLBackupInstances of a cluster at scheduled times.
type MySQLBackupSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   MySQLBackupScheduleSpec   `json:"spec,omitzero"`
	Status MySQLBackupScheduleStatus `json:"status,omitzero"`
}

// MySQLBackupScheduleSpec is what the user wants.
type MySQLBackupScheduleSpec struct {
	// Cluster names the MySQLCluster, in the schedule's namespace, to back up. It need not exist yet.
	Cluster string `json:"cluster"`
	// Time says when backups are due, in TimeZone: five cron fields, or a macro such as @daily.
	Time string `json:"time"`
	// TimeZone is an IANA name. Default UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Suspend means that the operator makes no further backups; backups in progress continue.
	Suspend bool `json:"suspend,omitempty"`
	// ConcurrencyPolicy says what happens when a backup is due while an earlier backup of the schedule is in progress. Default Forbid.
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// StartingDeadlineSeconds is how late a backup may start that could not start in time; nil means no limit.
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// Retention says which of the schedule's backups are deleted, with their data. Empty keeps all.
	Retention BackupRetention `json:"retention,omitzero"`
	// FailedHistoryLimit is how many failed instances are kept for inspection. Default 3.
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`

	BackupSettings `json:",inline"`
}

// ConcurrencyPolicy says what happens when a backup is due while an earlier one is in progress.
type ConcurrencyPolicy string

const (
	// ForbidConcurrent skips the new backup. It counts as missed, and the operator makes it later within StartingDeadlineSeconds.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// AllowConcurrent makes both backups.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ReplaceConcurrent ends the backup in progress, which fails, and makes the new one.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// BackupRetention limits what a schedule keeps. The operator deletes a completed backup, with its data, if it is beyond KeepLast or older
// than KeepFor; with both set it must be both. It never deletes the latest completed backup of a cluster.
type BackupRetention struct {
	// KeepLast is the number of completed backups to keep: at least 1. nil means no limit.
	KeepLast *int32 `json:"keepLast,omitempty"`
	// KeepFor is how long to keep a backup after its completion, for example 720h. Empty means no limit.
	KeepFor string `json:"keepFor,omitempty"`
}

// BackupSettings say how and where backups are made.
type BackupSettings struct {
	// Storage is the size of the volume for backups that the operator creates. Zero means the size of each member's volume.
	Storage resource.Quantity `json:"storage,omitzero"`
	// StorageClassName is the class of that volume; nil means the default class.
	StorageClassName *string `json:"storageClassName,omitempty"`
	// Destination is where backups go; nil means a volume that the operator creates.
	Destination *BackupDestination `json:"destination,omitempty"`
	// Encryption encrypts backups before they leave the Pod; nil means no encryption.
	Encryption *BackupEncryption `json:"encryption,omitempty"`
	// BandwidthLimit is the maximum speed at which the member is read, in bytes per second. Zero means the default: no limit for a replica and
	// 64Mi for a primary. By default a member with busy clients also works for the backup only part of the time.
	BandwidthLimit resource.Quantity `json:"bandwidthLimit,omitzero"`
	// ActiveDeadlineSeconds is how long a backup may take, waiting and all attempts together, from when the operator first sees
	// it. Default 86400.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// DeletionPolicy decides whether deleting the instance also deletes the backup's data. Default Retain.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DeletionPolicy decides whether deleting an instance also deletes the backup's data.
type DeletionPolicy string

const (
	// RetainData keeps the data.
	RetainData DeletionPolicy = "Retain"
	// DeleteData deletes the data.
	DeleteData DeletionPolicy = "Delete"
)

// BackupDestination is a place for backups.
type BackupDestination struct {
	// URL is a bucket with a prefix, with options as a query: s3://bucket/prefix?region=…&endpoint=https://…&use_path_style=true,
	// gs://bucket/prefix, azblob://container/prefix; or file:///folder in the volume of Claim.
	URL string `json:"url,omitempty"`
	// Claim names an existing PersistentVolumeClaim of the namespace to use.
	Claim string `json:"claim,omitempty"`
	// Secret names the Secret with credentials for URL. Empty means the identity of ServiceAccountName.
	Secret string `json:"secret,omitempty"`
	// ServiceAccountName is the account that backup Pods run under, for clouds that give it an identity.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// BackupEncryption names the key that encrypts backups.
type BackupEncryption struct {
	// Secret names the Secret with the key. "recipient" (age public keys, one a line) is enough to encrypt. "identity" (age secret keys) is
	// needed to restore, and encrypts if there is no "recipient".
	Secret string `json:"secret"`
}

// MySQLBackupInstance is one backup.
type MySQLBackupInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   MySQLBackupInstanceSpec   `json:"spec,omitzero"`
	Status MySQLBackupInstanceStatus `json:"status,omitzero"`
}

// MySQLBackupInstanceSpec says what to back up, and where to store it. Everything except DeletionPolicy is immutable.
type MySQLBackupInstanceSpec struct {
	// Schedule names a schedule whose settings apply where the instance has none. With the label LabelBackupSchedule of the same value, the
	// instance belongs to the schedule.
	Schedule string `json:"schedule,omitempty"`
	// Cluster names the MySQLCluster. Empty means the cluster of the schedule.
	Cluster string `json:"cluster,omitempty"`

	BackupSettings `json:",inline"`
}

// BackupPhase is the state of a backup in one word.
type BackupPhase string

// The phases, with the names of the founding document.
const (
	BackupScheduled BackupPhase = "Scheduled" // accepted; it waits for something, or for its Pod
	BackupStarted   BackupPhase = "Started"   // its Pod is running, or the next attempt begins soon
	BackupFailed    BackupPhase = "Failed"    // it ended without a backup; this never changes
	BackupCompleted BackupPhase = "Completed" // complete and flushed, and its manifest was read back
)

// The labels of an instance, with the keys of the founding operator.
const (
	LabelBackupSchedule = "schedule"
	LabelBackupCluster  = "cluster"
)

// MySQLBackupInstanceStatus is what is known of a backup.
type MySQLBackupInstanceStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// Phase only ever moves forward: Scheduled, Started, then Failed or Completed.
	Phase BackupPhase `json:"phase,omitempty"`
	// Cluster is the cluster that is backed up.
	Cluster string `json:"cluster,omitempty"`
	// Location is where the data is. It is set when the backup starts.
	Location *BackupLocation `json:"location,omitempty"`
	// Source is the member that was copied, for example my-cluster-1.
	Source string `json:"source,omitempty"`
	// StartTime is when the operator started the backup, CompletionTime when the backup was complete or had failed.
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Duration is the time from StartTime to CompletionTime, for people: 1m12s.
	Duration string `json:"duration,omitempty"`
	// Attempts is the number of Pods that ran for the backup.
	Attempts int32 `json:"attempts,omitempty"`
	// Progress is the progress of the backup. It stays when the backup has ended.
	Progress *TransferProgress `json:"progress,omitempty"`
	// Stages are the times of the attempt that completed the backup; nil if its Pod did not report them.
	Stages *BackupStages `json:"stages,omitempty"`
	// DataSize is the size of the files copied from the member, Size that of the archive at its destination, in bytes.
	DataSize int64 `json:"dataSize,omitempty"`
	Size     int64 `json:"size,omitempty"`
	// SizeSummary is Size for people: 1.2Gi.
	SizeSummary string `json:"sizeSummary,omitempty"`
	// GTIDExecuted is the set of transactions that are certainly in the backup. The backup may have a few more, committed while the copy
	// ended. Empty if the set is too long: the manifest has it.
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	// ServerVersion is the version of the member that was copied.
	ServerVersion string `json:"serverVersion,omitempty"`
	// Checksum is the SHA-256 of the backup's manifest, which holds the checksums of everything else: sha256:….
	Checksum string `json:"checksum,omitempty"`
}

// BackupStages are the times that the stages of an attempt took, in seconds: 12.3s.
type BackupStages struct {
	// Wait is the time until the Pod found a member whose copy could begin.
	Wait string `json:"wait"`
	// Copy is the time that the member needed to send its data.
	Copy string `json:"copy"`
	// Rest is the time that the copy paused to spare the member's clients.
	Rest string `json:"rest"`
	// Upload is the time that the member waited until its data was compressed, encrypted and stored.
	Upload string `json:"upload"`
	// Finish is the time after the copy, to store the last pieces and the manifest.
	Finish string `json:"finish"`
}

// BackupLocation is where a backup is, and what is needed to read it.
type BackupLocation struct {
	// URL is the backup's own folder: s3://bucket/prefix/NAMESPACE/CLUSTER/INSTANCE?…, or file:///NAMESPACE/CLUSTER/INSTANCE in the
	// volume of Claim.
	URL string `json:"url"`
	// Claim is the PersistentVolumeClaim, for a file URL.
	Claim string `json:"claim,omitempty"`
	// Secret names the Secret with the credentials; empty for none.
	Secret string `json:"secret,omitempty"`
	// ServiceAccountName is the account of the Pods that access the data; empty for none.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// EncryptionSecret names the Secret with the key; empty for a backup that is not encrypted.
	EncryptionSecret string `json:"encryptionSecret,omitempty"`
}

// TransferProgress is the progress of a backup or a restore.
type TransferProgress struct {
	// Bytes is how many bytes of the data directory are processed, TotalBytes its approximate size. 0 means unknown.
	Bytes      int64 `json:"bytes,omitempty"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// Percent is 0 to 100.
	Percent int32 `json:"percent"`
	// BytesPerSecond is the speed of the last seconds.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Summary is the progress in a few words, for people: 42% of 1.2Gi, 180Mi/s.
	Summary string `json:"summary,omitempty"`
}

// MySQLBackupScheduleStatus is what is known of a schedule.
type MySQLBackupScheduleStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// LastScheduleTime is the scheduled time that the last instance was created for, NextScheduleTime the next one.
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// LastSuccessfulTime is when the latest completed backup was complete, LastBackup is its name.
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	LastBackup         string       `json:"lastBackup,omitempty"`
	// Active names the instances in progress, at most 100.
	Active []string `json:"active,omitempty"`
	// Backups is the number of completed backups of the schedule. Missed is the number of times without a backup since the last that was made;
	// 100 means 100 or more.
	Backups int32 `json:"backups"`
	Missed  int32 `json:"missed,omitempty"`
}

// RestoreSettings say how to read a backup from a URL, or in another way than its instance says.
type RestoreSettings struct {
	// Claim is the PersistentVolumeClaim that holds the backup, for a file URL.
	Claim string `json:"claim,omitempty"`
	// Secret names the Secret with the credentials, ServiceAccountName the account of the restoring Pod.
	Secret             string `json:"secret,omitempty"`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// EncryptionSecret names the Secret with the key "identity" of an encrypted backup.
	EncryptionSecret string `json:"encryptionSecret,omitempty"`
	// Checksum is the SHA-256 of the manifest of the only backup that may be restored: sha256:…. Empty means the checksum of the instance, or
	// any backup with a URL.
	Checksum string `json:"checksum,omitempty"`
	// BandwidthLimit is the maximum speed at which the data is written, in bytes per second. Zero means no limit.
	BandwidthLimit resource.Quantity `json:"bandwidthLimit,omitzero"`
}

// RestorePhase is the state of a restore in one word.
type RestorePhase string

// The phases of a restore.
const (
	RestorePending   RestorePhase = "Pending"
	RestoreRunning   RestorePhase = "Running"
	RestoreFailed    RestorePhase = "Failed"
	RestoreCompleted RestorePhase = "Completed"
)

// RestoreStatus is the state of the restore that a cluster started with.
type RestoreStatus struct {
	Phase RestorePhase `json:"phase"`
	// Backup names the instance, and is empty for a restore from a URL. URL is the backup's folder.
	Backup string `json:"backup,omitempty"`
	URL    string `json:"url,omitempty"`
	// Adopted reports whether nothing was restored, because the volume holds data that began as this backup and that a cluster has used since.
	Adopted bool `json:"adopted,omitempty"`
	// Checksum is the SHA-256 of the manifest of the restored backup.
	Checksum       string            `json:"checksum,omitempty"`
	StartTime      *metav1.Time      `json:"startTime,omitempty"`
	CompletionTime *metav1.Time      `json:"completionTime,omitempty"`
	Attempts       int32             `json:"attempts,omitempty"`
	Progress       *TransferProgress `json:"progress,omitempty"`
	// GTIDExecuted and ServerVersion are those of the backup.
	GTIDExecuted  string `json:"gtidExecuted,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
}
