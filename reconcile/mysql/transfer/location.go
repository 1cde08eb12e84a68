package transfer

import (
	"fmt"
	"net/url"
	"path"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// Identity identifies a backup; Schedule is empty for one without.
type Identity struct{ Namespace, Cluster, Schedule, Instance string }

// schemeFile is the scheme of folders in a volume. schemeAzure is that of Azure Blob Storage.
const (
	schemeFile  = "file"
	schemeAzure = "azblob"
)

// Resolve returns the effective settings of an instance: its own, then its schedule's, then the defaults. The schedule may be nil. The
// cluster's own storage is the default size of the volume.
func Resolve(instance v1.MySQLBackupInstanceSpec, schedule *v1.MySQLBackupSchedule, cluster v1.MySQLClusterSpec) v1.BackupSettings {
	own := instance.BackupSettings
	if schedule != nil {
		own = merged(own, schedule.Spec.BackupSettings)
	}
	if own.Storage.IsZero() {
		own.Storage = cluster.Storage
	}
	if own.ActiveDeadlineSeconds == nil {
		day := int64(defaultDeadline)
		own.ActiveDeadlineSeconds = &day
	}
	if own.DeletionPolicy == "" {
		own.DeletionPolicy = v1.RetainData
	}
	return own
}

// defaultDeadline is how long a backup may take, in seconds.
const defaultDeadline = 86400

func merged(own, others v1.BackupSettings) v1.BackupSettings {
	if own.Storage.IsZero() {
		own.Storage = others.Storage
	}
	if own.StorageClassName == nil {
		own.StorageClassName = others.StorageClassName
	}
	if own.Destination == nil {
		own.Destination = others.Destination
	}
	if own.Encryption == nil {
		own.Encryption = others.Encryption
	}
	if own.BandwidthLimit.IsZero() {
		own.BandwidthLimit = others.BandwidthLimit
	}
	if own.ActiveDeadlineSeconds == nil {
		own.ActiveDeadlineSeconds = others.ActiveDeadlineSeconds
	}
	if own.DeletionPolicy == "" {
		own.DeletionPolicy = others.DeletionPolicy
	}
	return own
}

// DefaultClaim is the claim of the volume that the operator creates if there is no destination: one for the schedule, or else for the
// cluster.
func DefaultClaim(who Identity) string {
	if who.Schedule != "" {
		return who.Schedule
	}
	return who.Cluster + "-backups"
}

// LocationOf returns where the data of an instance goes: a folder of its own in the destination. It fails if the URL is invalid.
func LocationOf(settings v1.BackupSettings, who Identity) (v1.BackupLocation, error) {
	destination := v1.BackupDestination{}
	if settings.Destination != nil {
		destination = *settings.Destination
	}
	if destination.URL == "" {
		destination.URL = schemeFile + ":///"
	}
	base, err := url.Parse(destination.URL)
	if err != nil {
		return v1.BackupLocation{}, fmt.Errorf("read destination.url: %w", err)
	}
	base.Path = path.Join("/", base.Path, who.Namespace, who.Cluster, who.Instance)
	location := v1.BackupLocation{URL: base.String(), Secret: destination.Secret, ServiceAccountName: destination.ServiceAccountName}
	if base.Scheme == schemeFile {
		if location.Claim = destination.Claim; location.Claim == "" {
			location.Claim = DefaultClaim(who)
		}
	}
	if settings.Encryption != nil {
		location.EncryptionSecret = settings.Encryption.Secret
	}
	return location, nil
}
