// Package transfer has what the kinds that make, delete and restore backups share: orders, Jobs, and how to read their results.
//
// A kind starts a transfer by applying BackupJob, RestoreJob or DeleteJob. It reads the state with Observe, and asks a running Pod with
// protocol.Client. The Pods run protocol.Program, whose subcommands are in package mover. They report their end with an exit status and a
// protocol.Outcome, which is the Pod's termination message. The operator links this package, which therefore does not link the SDKs of
// stores; the Pods' program links only package protocol of it.
package transfer
