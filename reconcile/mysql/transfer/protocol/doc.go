// Package protocol is what the operator and the Pods of transfers agree on: the program with its subcommands and flags, its exit status and
// Outcome, its Progress while it runs, and the reasons of both. It links neither Kubernetes' types nor the SDKs of stores.
package protocol
