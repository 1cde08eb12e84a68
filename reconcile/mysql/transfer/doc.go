// Package transfer is what the kinds that make, delete and restore backups share: Jobs, what is to be read from them, and the programs
// that run in their Pods.
//
// A kind asks for a transfer by applying BackupJob, RestoreJob or DeleteJob, reads how it goes with Observe, and asks a running Pod with
// Client. The programs are RunBackup, RunRestore and RunDelete; they tell how they ended with an exit status and an Outcome, which is the
// Pod's termination message.
package transfer
