package reconcile

// The keys of log lines. Every part of the operator uses these keys for the same things.
const (
	logKind      = "kind"
	logNamespace = "namespace"
	logName      = "name"
	logOp        = "op"
	logReason    = "reason"
	logInstance  = "instance"
	logDuration  = "duration"
	logError     = "error"
)
