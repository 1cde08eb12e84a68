package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MySQLBackupSchedule makes a MySQLBackupInstance of a cluster whenever its time has come.
type MySQLBackupSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   MySQLBackupScheduleSpec   `json:"spec,omitzero"`
	Status MySQLBackupScheduleStatus `json:"status,omitzero"`
}

// MySQLBackupScheduleSpec is what the user wants.
type MySQLBackupScheduleSpec struct {
	// Cluster names the MySQLCluster, in the schedule's namespace, to take backups of. It need not exist yet.
	Cluster string `json:"cluster"`
	// Time is when, as five cron fields or a macro such as @daily, read in TimeZone.
	Time string `json:"time"`
	// TimeZone is an IANA name. Default UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Suspend makes no further backups; those under way go on.
	Suspend bool `json:"suspend,omitempty"`
	// ConcurrencyPolicy says what happens when a time comes while the schedule's last backup is still under way. Default Forbid.
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// StartingDeadlineSeconds is how late a backup may begin that could not begin in time; nil is no limit.
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// Retention says which of the schedule's backups are deleted, with their data. Empty keeps all.
	Retention BackupRetention `json:"retention,omitzero"`
	// FailedHistoryLimit is how many failed instances are kept to be looked at. Default 3.
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`

	BackupSettings `json:",inline"`
}

// ConcurrencyPolicy is what becomes of a backup whose time comes while another one is under way.
type ConcurrencyPolicy string

const (
	// ForbidConcurrent leaves the new one out; it counts as missed and is made up for within StartingDeadlineSeconds.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// AllowConcurrent makes both.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ReplaceConcurrent ends the one under way, which fails, and makes the new one.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// BackupRetention bounds what a schedule keeps. A completed backup is deleted, with its data, when it is beyond KeepLast or older than
// KeepFor; with both set it must be both. The latest completed one is never deleted.
type BackupRetention struct {
	// KeepLast is how many completed backups to keep: at least 1. nil is no limit.
	KeepLast *int32 `json:"keepLast,omitempty"`
	// KeepFor is for how long to keep one after its completion, for example 720h. Empty is no limit.
	KeepFor string `json:"keepFor,omitempty"`
}

// BackupSettings are how and where backups are made.
type BackupSettings struct {
	// Storage is the size of the volume for backups, where the operator makes one. Zero means that of the cluster's members.
	Storage resource.Quantity `json:"storage,omitzero"`
	// StorageClassName is the class of that volume; nil means the default class.
	StorageClassName *string `json:"storageClassName,omitempty"`
	// Destination is where backups go; nil means the volume that the operator makes.
	Destination *BackupDestination `json:"destination,omitempty"`
	// Encryption encrypts backups before they leave the Pod; nil does not.
	Encryption *BackupEncryption `json:"encryption,omitempty"`
	// BandwidthLimit bounds, in bytes per second, how fast the member is read. Zero leaves it to the backup: no limit on a replica and 64Mi on
	// a primary, either of which works for it a part of the time only while clients are at work.
	BandwidthLimit resource.Quantity `json:"bandwidthLimit,omitzero"`
	// ActiveDeadlineSeconds is how long a backup may take, all attempts together. Default 86400.
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// DeletionPolicy determines whether deleting the instance also deletes the backup's data. Default Retain.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DeletionPolicy determines whether deleting an instance also deletes the backup's data.
type DeletionPolicy string

const (
	// RetainData leaves the data where it is.
	RetainData DeletionPolicy = "Retain"
	// DeleteData deletes it.
	DeleteData DeletionPolicy = "Delete"
)

// BackupDestination is a place for backups.
type BackupDestination struct {
	// URL is a bucket with a prefix, with options as a query: s3://bucket/prefix?region=…&endpoint=https://…&use_path_style=true,
	// gs://bucket/prefix, azblob://container/prefix; or file:///folder in the volume of Claim.
	URL string `json:"url,omitempty"`
	// Claim names an existing PersistentVolumeClaim of the namespace to use.
	Claim string `json:"claim,omitempty"`
	// Secret names the Secret with credentials for URL. Empty uses the identity of ServiceAccountName.
	Secret string `json:"secret,omitempty"`
	// ServiceAccountName is the account that backup Pods run under, for clouds that give it an identity.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// BackupEncryption says with which key.
type BackupEncryption struct {
	// Secret names the Secret with the key: "recipient" (age public keys, one a line) is enough to encrypt, "identity" (age secret keys) is
	// needed to restore and also encrypts.
	Secret string `json:"secret"`
}

// MySQLBackupInstance is one backup.
type MySQLBackupInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   MySQLBackupInstanceSpec   `json:"spec,omitzero"`
	Status MySQLBackupInstanceStatus `json:"status,omitzero"`
}

// MySQLBackupInstanceSpec is what to back up, and where to. All but DeletionPolicy is immutable.
type MySQLBackupInstanceSpec struct {
	// Schedule names the schedule that the instance belongs to; its settings apply where the instance has none.
	Schedule string `json:"schedule,omitempty"`
	// Cluster names the MySQLCluster. Empty means the schedule's.
	Cluster string `json:"cluster,omitempty"`

	BackupSettings `json:",inline"`
}

// BackupPhase is the state of a backup in one word.
type BackupPhase string

// The phases, in the founding document's words.
const (
	BackupScheduled BackupPhase = "Scheduled" // accepted; waits for something, or for its Pod
	BackupStarted   BackupPhase = "Started"   // its Pod is at work
	BackupFailed    BackupPhase = "Failed"    // over, and there is no backup; it stays so
	BackupCompleted BackupPhase = "Completed" // complete, flushed, and its manifest read back
)

// The labels of an instance: the founding operator's.
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
	// Location is where the data is, fixed when the backup starts.
	Location *BackupLocation `json:"location,omitempty"`
	// Source is the member that was copied, for example my-cluster-1.
	Source string `json:"source,omitempty"`
	// StartTime is when the first Pod was asked for, CompletionTime when the backup was complete or had failed.
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Duration is the time between both, for people: 1m12s.
	Duration string `json:"duration,omitempty"`
	// Attempts counts the Pods that were at work.
	Attempts int32 `json:"attempts,omitempty"`
	// Progress is how far a running backup has come.
	Progress *TransferProgress `json:"progress,omitempty"`
	// Stages says what the attempt that completed the backup took its time for; nil where its Pod did not tell.
	Stages *BackupStages `json:"stages,omitempty"`
	// DataSize is how many bytes the files copied from the member have, Size how many the archive takes at its destination.
	DataSize int64 `json:"dataSize,omitempty"`
	Size     int64 `json:"size,omitempty"`
	// SizeSummary is Size for people: 1.2Gi.
	SizeSummary string `json:"sizeSummary,omitempty"`
	// GTIDExecuted is the set of transactions that are certainly in the backup. It may have a few more, committed while the copy ended.
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	// ServerVersion is the version of the member that was copied.
	ServerVersion string `json:"serverVersion,omitempty"`
	// Checksum is the SHA-256 of the backup's manifest, which has the checksums of everything else: sha256:….
	Checksum string `json:"checksum,omitempty"`
}

// BackupStages says what an attempt at a backup took its time for, in seconds: 12.3s.
type BackupStages struct {
	// Wait is until a member was found whose copy could begin.
	Wait string `json:"wait"`
	// Copy is what the member took to deliver.
	Copy string `json:"copy"`
	// Rest is how long the member was left alone for the sake of its clients.
	Rest string `json:"rest"`
	// Upload is how long the member waited until what it had delivered was compressed, encrypted and stored.
	Upload string `json:"upload"`
	// Finish is what came after the copy: storing the last pieces, and the manifest.
	Finish string `json:"finish"`
}

// BackupLocation is where a backup is and what it takes to read it.
type BackupLocation struct {
	// URL is the backup's own folder: s3://bucket/prefix/NAMESPACE/CLUSTER/INSTANCE?…, or file:///NAMESPACE/CLUSTER/INSTANCE in the volume of Claim.
	URL string `json:"url"`
	// Claim is the PersistentVolumeClaim, for a file URL.
	Claim string `json:"claim,omitempty"`
	// Secret has the credentials; empty for none.
	Secret string `json:"secret,omitempty"`
	// ServiceAccountName is the account of Pods that read it; empty for none.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// EncryptionSecret has the key; empty for a backup that is not encrypted.
	EncryptionSecret string `json:"encryptionSecret,omitempty"`
}

// TransferProgress is how far a backup or a restore has come.
type TransferProgress struct {
	// Bytes is how many bytes of the data directory are through, TotalBytes how many there are about. 0 is not known yet.
	Bytes      int64 `json:"bytes,omitempty"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// Percent is 0 to 100.
	Percent int32 `json:"percent"`
	// BytesPerSecond is the rate of the last seconds.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Summary is all of it for people: 42% of 1.2Gi, 180Mi/s.
	Summary string `json:"summary,omitempty"`
}

// MySQLBackupScheduleStatus is what is known of a schedule.
type MySQLBackupScheduleStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// LastScheduleTime is the time of the schedule that the last instance was made for, NextScheduleTime the next one.
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// LastSuccessfulTime is when the latest completed backup was complete, LastBackup its name.
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	LastBackup         string       `json:"lastBackup,omitempty"`
	// Active names the instances under way.
	Active []string `json:"active,omitempty"`
	// Backups is how many completed backups of the schedule there are; Missed how many times passed without one since the last that was made.
	Backups int32 `json:"backups"`
	Missed  int32 `json:"missed,omitempty"`
}

// RestoreSettings are what it takes to read a backup from a URL, or another way than its instance says.
type RestoreSettings struct {
	// Claim is the PersistentVolumeClaim that holds the backup, for a file URL.
	Claim string `json:"claim,omitempty"`
	// Secret has the credentials, ServiceAccountName is the account of the Pod that restores.
	Secret             string `json:"secret,omitempty"`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// EncryptionSecret has the key "identity" of an encrypted backup.
	EncryptionSecret string `json:"encryptionSecret,omitempty"`
	// Checksum is that of the manifest of the only backup to restore: sha256:…. Empty means that of the instance, and with a URL any.
	Checksum string `json:"checksum,omitempty"`
	// BandwidthLimit bounds, in bytes per second, how fast the data is written. Zero is no limit.
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

// RestoreStatus is what is known of the restore that a cluster began with.
type RestoreStatus struct {
	Phase RestorePhase `json:"phase"`
	// Backup is the instance, or empty for a restore from a URL; URL is where it is.
	Backup string `json:"backup,omitempty"`
	URL    string `json:"url,omitempty"`
	// Adopted says that nothing was restored: the volume began as the backup before, and a cluster has used it since.
	Adopted bool `json:"adopted,omitempty"`
	// Checksum is that of the manifest that was restored.
	Checksum       string            `json:"checksum,omitempty"`
	StartTime      *metav1.Time      `json:"startTime,omitempty"`
	CompletionTime *metav1.Time      `json:"completionTime,omitempty"`
	Attempts       int32             `json:"attempts,omitempty"`
	Progress       *TransferProgress `json:"progress,omitempty"`
	// GTIDExecuted and ServerVersion are the backup's.
	GTIDExecuted  string `json:"gtidExecuted,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
}
