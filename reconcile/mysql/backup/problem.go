package backup

// The reasons that this kind has in addition to those of reconcile/mysql/transfer/protocol.
const (
	reasonScheduleNotFound = "ScheduleNotFound"
	reasonURLInvalid       = "DestinationInvalid"
	reasonDataDeleted      = "BackupDataDeleted"
	reasonRowsMissing      = "TablesWithoutRows"
)
