package mover

import (
	"context"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// RunVerify reads a whole backup, checks everything in it, and writes nothing.
func RunVerify(ctx context.Context, env Environment) (protocol.Outcome, error) {
	m := &meter{}
	defer env.background(ctx, m)()
	m.stage("verifying")
	keys, _, err := env.keys()
	if err != nil {
		return protocol.Outcome{}, err
	}
	store, err := env.open(ctx)
	if err != nil {
		return protocol.Outcome{}, err
	}
	defer func() { _ = store.Close() }()
	r := restoreAttempt{env: env}
	manifest, checksum, err := r.load(ctx, store)
	if err != nil {
		return protocol.Outcome{}, err
	}
	if manifest.Encryption.Scheme != "" && len(keys.Identities) == 0 {
		return protocol.Outcome{}, retry(protocol.ReasonEncryptionKeyNotFound, "the backup is encrypted for %v: provide the secret key of one of these", manifest.Encryption.Recipients)
	}
	m.total(manifest.Data.Raw)
	if err := archive.Verify(ctx, store, manifest, archive.ReadOptions{Identities: keys.Identities, Limit: env.Bandwidth, Progress: m.done}); err != nil {
		return protocol.Outcome{}, interrupted(ctx, err)
	}
	return outcomeOf(manifest, checksum), nil
}
