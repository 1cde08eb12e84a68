// Package transfer is what the kinds that make, delete and restore backups share: orders, Jobs, and what is to be read from them.
//
// A kind asks for a transfer by applying BackupJob, RestoreJob or DeleteJob, reads how it goes with Observe, and asks a running Pod with
// Client. The Pods run Program, whose subcommands package mover has. They tell how they ended with an exit status and an Outcome, which is
// the Pod's termination message. This package is linked with the operator, and therefore not with the SDKs of stores.
package transfer
