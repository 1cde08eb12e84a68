package backup

// The reasons that this kind has beside those of reconcile/mysql/transfer.
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

// problem is something that keeps a backup from going on.
type problem struct {
	reason, message string
	// stalled says that it does not pass without somebody's help.
	stalled bool
}
