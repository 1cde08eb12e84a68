package backup

// The reasons that this kind has in addition to those of reconcile/mysql/transfer.
const (
	reasonScheduleNotFound = "ScheduleNotFound"
	reasonURLInvalid       = "DestinationInvalid"
	reasonForeignObject    = "ForeignObject"
	reasonForbidden        = "Forbidden"
	reasonRejected         = "Rejected"
	reasonNoStorageClass   = "NoDefaultStorageClass"
	reasonPodsNotCreated   = "PodsNotCreated"
	reasonDataDeleted      = "BackupDataDeleted"
	reasonRowsMissing      = "TablesWithoutRows"
)

// problem is something that prevents a backup from continuing.
type problem struct {
	reason, message string
	// stalled means that a user must act.
	stalled bool
}
