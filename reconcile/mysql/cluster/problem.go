package cluster

import (
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/restore"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// The reasons of the Ready condition, in addition to those of restores (reconcile/mysql/transfer/protocol). Status, events,
// logs and docs/troubleshooting.md use the same words.
const (
	reasonAllMembersReady    = "AllMembersReady"
	reasonCreatingMembers    = restore.ReasonCreatingMembers
	reasonMembersNotReady    = "MembersNotReady"
	reasonPrimaryUnavailable = "PrimaryUnavailable"
	reasonPaused             = "Paused"
	reasonPausing            = "Pausing"
	reasonAuthorityLost      = "CertificateAuthorityLost"

	reasonSecretNotFound  = "SecretNotFound"
	reasonSecretInvalid   = "SecretInvalid"
	reasonRootPassword    = "RootPasswordNotInForce"
	reasonVolumePending   = "VolumePending"
	reasonImagePull       = "ImagePullFailed"
	reasonImageUnusable   = "ImageUnusable"
	reasonSettings        = "SettingsRefused"
	reasonPrepareFailed   = "PrepareFailed"
	reasonServerFailed    = "MysqldFailed"
	reasonDowngrade       = "ImageOlderThanData"
	reasonUnschedulable   = "Unschedulable"
	reasonDiskFull        = "DiskFull"
	reasonCommitsHang     = "CommitsHang"
	reasonErrantMember    = string(replication.ReasonErrantMember)
	reasonReplicaBroken   = string(replication.ReasonReplicationBroken)
	reasonDegraded        = string(replication.ReasonCommitsNotReplicated)
	reasonDurable         = "CommitsReplicated"
	reasonSingleMember    = string(replication.ReasonSingleMember)
	reasonCommitsBlocked  = "CommitsBlocked"
	reasonAcksNotPromised = "ReplicasNotYetAcknowledging"
	reasonPrimaryFirst    = "PrimaryWouldRestartFirst"
	reasonUpgradeBlocked  = "UpgradeBlocked"
)

// conditionDurable reports whether every acknowledged commit is on as many members as the cluster's size requires.
const conditionDurable = "Durable"

// conditionFailoverReady reports whether a replica could take over from the primary now.
const conditionFailoverReady = "FailoverReady"
