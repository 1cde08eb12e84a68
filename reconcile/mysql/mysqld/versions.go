package mysqld

// Differences between releases of MySQL, from 8.0.26 (the first with source and replica in every name) to 9.x:
//
//   - Plugins: semisync_source.so and semisync_replica.so since 8.0.26; the older semisync_master.so is not used.
//   - SHOW REPLICA STATUS has had the column names used here since 8.0.22.
//   - Tagged GTIDs since 8.3 (replication.ParseGTIDSet reads both forms).
//   - CLONE INSTANCE ends with error 3707 when nothing supervises mysqld; mysqld then stops and the supervisor starts it again
//     (manual, "Cloning Remote Data"). Since 8.0.37 donor and recipient may differ in patch version, before that not.
//   - mysql_native_password is off since 8.4 and gone in 9.0; all accounts made here use caching_sha2_password.
const (
	// errRestartFailed is ER_RESTART_SERVER_FAILED: the copy is complete, and mysqld stops because it has no supervisor.
	errRestartFailed = 3707
	// errCloneDonor is ER_CLONE_DONOR: the donor refused. The text has the donor's own error number.
	errCloneDonor = 3862
	// errTooManyClones is ER_CLONE_TOO_MANY_CONCURRENT_CLONES: the donor serves another clone.
	errTooManyClones = 3634
	// errAccessDenied is ER_ACCESS_DENIED_ERROR.
	errAccessDenied = 1045
	// errCannotUser is ER_CANNOT_USER, for example because the account in a statement does not exist.
	errCannotUser = 1396
	// errUnknownDatabase is ER_BAD_DB_ERROR, errNoSuchTable ER_NO_SUCH_TABLE.
	errUnknownDatabase = 1049
	errNoSuchTable     = 1146
	// errNoSuchEvent is ER_ERROR_WHEN_EXECUTING_COMMAND: SHOW BINLOG EVENTS finds no file, or no event at a position.
	errNoSuchEvent = 1220
	// errLockWait is ER_LOCK_WAIT_TIMEOUT.
	errLockWait = 1205
	// errUnknownVariable is ER_UNKNOWN_SYSTEM_VARIABLE.
	errUnknownVariable = 1193
	// errTooManyConnections is ER_CON_COUNT_ERROR.
	errTooManyConnections = 1040
	// errOptionPrevents is ER_OPTION_PREVENTS_STATEMENT, for example because of super_read_only.
	errOptionPrevents = 1290
)
