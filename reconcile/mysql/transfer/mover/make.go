package mover

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// abortTimeout bounds the removal of what a failed attempt has stored. The removal must end before kubelet kills the Pod (abortGrace).
const abortTimeout = 45 * time.Second

// RunBackup makes the backup: it streams a copy of a member to the backup's folder at the destination. A failed attempt leaves nothing
// there, or only what the next attempt removes. The manifest, written last, makes it a backup. If an earlier attempt completed the backup
// and could not report it, that backup is the result.
func RunBackup(ctx context.Context, env Environment) (protocol.Outcome, error) {
	outcome, err := backupAttempt{env: env, meter: &meter{}, members: env.members()}.run(ctx)
	return outcome, interrupted(ctx, err)
}

// members returns the real members, with the account for copies.
func (e Environment) members() members {
	return members{
		wait: donorWait, pause: donorPause, busyWait: busyWait, busyPause: busyPause,
		connect: func(host string) (server, error) {
			account, err := e.Layout.Account(mysqld.CloneUser)
			if err != nil {
				return nil, err
			}
			security, err := e.Layout.ClientTLS()
			if err != nil {
				return nil, err
			}
			return mysqld.Remote(host, host, e.Port, account, security)
		},
		copy: func(ctx context.Context, host string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
			account, err := e.Layout.Account(mysqld.CloneUser)
			if err != nil {
				return clone.Result{}, err
			}
			security, err := e.Layout.ClientTLS()
			if err != nil {
				return clone.Result{}, err
			}
			return clone.Copy(ctx, clone.Donor{Host: host, Port: e.Port, Account: account, TLS: security}, sink, observer)
		},
	}
}

// backupAttempt is one attempt at a backup.
type backupAttempt struct {
	env     Environment
	meter   *meter
	members members
	// began is when the attempt began.
	began time.Time
}

func (m backupAttempt) run(ctx context.Context) (protocol.Outcome, error) {
	m.began = time.Now()
	defer m.env.background(ctx, m.meter)()
	m.meter.stage("checking the destination")
	store, err := m.env.open(ctx)
	if err != nil {
		return protocol.Outcome{}, err
	}
	defer func() { _ = store.Close() }()
	if outcome, done, err := m.made(ctx, store); done || err != nil {
		return outcome, err
	}
	keys, encrypt, err := m.env.keys()
	if err != nil {
		return protocol.Outcome{}, err
	}
	if encrypt && len(keys.Recipients) == 0 {
		return protocol.Outcome{}, refused(protocol.ReasonEncryptionKeyInvalid, "read the encryption key: it has no public key")
	}
	return m.copyPatiently(ctx, store, keys)
}

// copyPatiently waits for a member that is giving a copy to another client, such as a new replica. That may take longer than all attempts
// of a Job. It chooses the member again each time.
func (m backupAttempt) copyPatiently(ctx context.Context, store *archive.Store, keys encryption.Keys) (protocol.Outcome, error) {
	bounded, cancel := context.WithTimeout(ctx, m.members.busyWait)
	defer cancel()
	for {
		outcome, err := m.chooseAndCopy(ctx, store, keys)
		if !clone.IsBusy(err) {
			return outcome, err
		}
		m.meter.stage("waiting for a member that can be copied")
		m.env.Log.Info("the member gives a copy to another client, will retry", "member", outcome.Source, "in", m.members.busyPause.String())
		select {
		case <-bounded.Done():
			return outcome, err
		case <-time.After(m.members.busyPause):
		}
	}
}

func (m backupAttempt) chooseAndCopy(ctx context.Context, store *archive.Store, keys encryption.Keys) (protocol.Outcome, error) {
	m.meter.stage("looking for a member to copy")
	from, err := m.members.choose(ctx, serviceOf(m.env))
	if err != nil {
		return protocol.Outcome{}, err
	}
	defer func() { _ = from.server.Close() }()
	m.meter.update(func(p *protocol.Progress) { p.Source, p.Bytes = from.name(), 0 })
	outcome, err := m.copyTo(ctx, store, keys, from)
	outcome.Source = from.name()
	return outcome, err
}

// serviceOf is the Service that leads to replicas, or to the primary if there is none.
func serviceOf(e Environment) string { return e.Cluster + "-read." + e.Namespace + ".svc" }

func (m backupAttempt) identity() archive.Identity {
	return archive.Identity{Namespace: m.env.Namespace, Cluster: m.env.Cluster, Instance: m.env.Instance, UID: m.env.UID}
}

// made finds the backup that an earlier attempt completed. archive.Begin judges any other content of the folder.
func (m backupAttempt) made(ctx context.Context, store *archive.Store) (outcome protocol.Outcome, done bool, err error) {
	manifest, checksum, err := archive.Load(ctx, store)
	if _, unreachable := errors.AsType[*destination.StoreError](err); unreachable {
		return protocol.Outcome{}, false, err
	}
	if err != nil || manifest.Backup.UID != m.env.UID {
		return protocol.Outcome{}, false, nil //nolint:nilerr // there is no backup of ours: that is the normal case
	}
	m.env.Log.Info("an earlier attempt has made this backup", "checksum", checksum)
	return outcomeOf(manifest, checksum), true, nil
}

// outcomeOf is the report of a complete backup.
func outcomeOf(manifest archive.Manifest, checksum string) protocol.Outcome {
	return protocol.Outcome{
		Source: manifest.Source.Member, ServerVersion: manifest.Source.ServerVersion, GTIDExecuted: manifest.GTIDs.AtLeast,
		Checksum: checksum, DataSize: manifest.Data.Size, Size: manifest.Stored(), UID: manifest.Backup.UID, Instance: manifest.Backup.Instance,
	}
}

// copyTo copies a member to the store. After any failure it removes what it has stored.
func (m backupAttempt) copyTo(ctx context.Context, store *archive.Store, keys encryption.Keys, from source) (protocol.Outcome, error) {
	limit := m.limit(from)
	m.env.Log.Info("copying", "member", from.name(), "version", from.Version, "primary", from.Primary, "limit", limit, "to", store.URL())
	writer, err := archive.Begin(ctx, store, archive.WriteOptions{Identity: m.identity(), Recipients: keys.Recipients, Limit: limit})
	if err != nil {
		return protocol.Outcome{}, err
	}
	outcome, err := m.fill(ctx, writer, from)
	if err == nil {
		return outcome, nil
	}
	m.meter.stage("removing what was stored")
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if left := writer.Abort(bounded); left != nil {
		// The next attempt, or the deletion of the instance, removes it. Without a manifest it is no backup.
		m.env.Log.Error(left, "failed to remove parts of the failed attempt from the destination")
	}
	return protocol.Outcome{}, err
}

// limit is the read rate of the member, in bytes per second; 0 for no limit.
func (m backupAttempt) limit(from source) int64 {
	if m.env.Bandwidth == 0 && from.Primary {
		return DefaultPrimaryLimit
	}
	return m.env.Bandwidth
}

// fill copies everything and writes the manifest.
func (m backupAttempt) fill(ctx context.Context, writer *archive.Writer, from source) (protocol.Outcome, error) {
	manifest := archive.Manifest{
		Source:          archive.Source{Member: from.name(), Host: from.Host, ServerUUID: from.ServerUUID, ServerVersion: from.Version, Primary: from.Primary},
		OperatorVersion: m.env.Version,
	}
	pacer, stop := m.pace(ctx, from)
	defer stop()
	begun := time.Now()
	result, err := m.members.copy(ctx, from.Host, metered{Sink: writer, meter: m.meter, pacer: pacer}, m.observer(ctx, from, pacer, &manifest.GTIDs))
	if err != nil {
		return protocol.Outcome{}, err
	}
	copied := time.Now()
	if result.ServerUUID != from.ServerUUID {
		return protocol.Outcome{}, retry(protocol.ReasonCopyFailed, "copy %s: another server answered under its name", from.Host)
	}
	m.meter.stage("finishing")
	manifest.Data = archive.Data{Bytes: result.Bytes, Files: result.Files}
	manifest.Settings = result.Settings
	for _, plugin := range result.Plugins {
		if plugin.Library != "" {
			manifest.Plugins = append(manifest.Plugins, plugin.Name)
		}
	}
	manifest, checksum, err := writer.Finish(ctx, manifest)
	if err != nil {
		return protocol.Outcome{}, retryDamaged(err)
	}
	outcome := outcomeOf(manifest, checksum)
	outcome.Spent = &protocol.Spent{
		Wait: begun.Sub(m.began).Milliseconds(), Copy: (copied.Sub(begun) - pacer.stored - pacer.rested).Milliseconds(),
		Rest: pacer.rested.Milliseconds(), Upload: pacer.stored.Milliseconds(), Finish: time.Since(copied).Milliseconds(),
	}
	return outcome, nil
}

// pace pauses the copy while the member's clients are active, until the function that it returns is called. It does not if the user has set
// a rate.
func (m backupAttempt) pace(ctx context.Context, from source) (p *pacer, stop func()) {
	p = newPacer(ctx, m.env.Bandwidth == 0, runtime.NumCPU())
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(ctx, from.server, m.env.Log) })
	return p, func() {
		cancel()
		watching.Wait()
	}
}

// retryDamaged handles data of this attempt that is missing or damaged in the store. That is no verdict on a backup: another attempt stores
// the data again.
func retryDamaged(err error) error {
	_, incomplete := errors.AsType[*archive.IncompleteError](err)
	_, corrupt := errors.AsType[*archive.CorruptError](err)
	if incomplete || corrupt {
		return retry(protocol.ReasonCopyFailed, "store the backup: %w", err)
	}
	return err
}

// observer follows the stages, and records the two sets of transactions that bound the copy. All transactions committed before the copy's
// moment are in it. Transactions that had not begun to commit after that moment are not.
func (m backupAttempt) observer(ctx context.Context, from source, pacer *pacer, gtids *archive.GTIDs) clone.Observer {
	return clone.Observer{
		Estimated: m.meter.total,
		Stage: func(stage clone.Stage) error {
			m.meter.stage(stage.String())
			m.env.Log.Info("stage", "stage", stage.String(), "bytes", m.meter.now().Bytes)
			if stage != clone.StageFiles {
				pacer.resting = false
			}
			if stage != clone.StageRedo {
				return nil
			}
			seen, err := from.again(ctx)
			gtids.AtLeast = seen.Executed.String()
			return err
		},
		MomentPassed: func() error {
			seen, err := from.again(ctx)
			gtids.AtMost = seen.Executed.Union(seen.Pending).String()
			return err
		},
	}
}

// again queries the member once more.
func (s source) again(ctx context.Context) (mysqld.Donor, error) {
	seen, err := observe(ctx, s.server)
	if err != nil {
		return seen, retry(protocol.ReasonDonorUnavailable, "read the transactions of %s: %w", s.Host, err)
	}
	if seen.ServerUUID != s.ServerUUID {
		return seen, retry(protocol.ReasonCopyFailed, "read the transactions of %s: another server answered under its name", s.Host)
	}
	return seen, nil
}
