// Package mover implements Program of package protocol, in a Pod of a transfer or by hand: RunBackup, RunRestore, RunVerify and RunDelete.
// Ended turns their results into the Outcome and the exit status that the operator reads.
package mover
