package mover

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// RunRestore restores a backup to a member's volume, or by hand into a folder. It first checks what is there. If it is this backup,
// RunRestore succeeds, even if the destination no longer exists. It never touches other data. Then it makes all other checks before it
// writes the first byte. If it is killed at any point, the next run continues or starts again.
func RunRestore(ctx context.Context, env Environment) (protocol.Outcome, error) {
	outcome, err := restoreAttempt{env: env, meter: &meter{}, place: env.place(), directory: newDirectory}.run(ctx)
	return outcome, interrupted(ctx, err)
}

func (e Environment) place() place {
	if e.Layout.Volume != "" {
		return memberVolume{layout: e.Layout}
	}
	into, err := filepath.Abs(e.Into)
	if err != nil {
		into = filepath.Clean(e.Into) // there is no current directory: the check of the folder will report it
	}
	return folder{path: into}
}

// directory is a clone.Directory.
type directory interface {
	clone.Sink
	Finish() error
	Close() error
}

func newDirectory(root string) (directory, error) { return clone.NewDirectory(root) }

// restoreAttempt is one attempt at a restore.
type restoreAttempt struct {
	env       Environment
	meter     *meter
	place     place
	directory func(root string) (directory, error)
}

func (r restoreAttempt) run(ctx context.Context) (protocol.Outcome, error) {
	defer r.env.background(ctx, r.meter)()
	held, err := r.place.look()
	if err != nil {
		return protocol.Outcome{}, err
	}
	if r.certainlyTaken(held) {
		return protocol.Outcome{}, r.taken(held)
	}
	// A URL alone is no proof: the folder may hold another backup now.
	if known := (agent.RestoredFrom{UID: r.env.UID, Checksum: r.env.Checksum}); held.From.Is(known) {
		return r.adopt(held)
	}
	r.meter.stage("checking the backup")
	keys, _, err := r.env.keys()
	if err != nil {
		return protocol.Outcome{}, err
	}
	store, err := r.env.open(ctx)
	if err != nil {
		return protocol.Outcome{}, err
	}
	defer func() { _ = store.Close() }()
	manifest, checksum, err := r.load(ctx, store)
	if err != nil {
		return protocol.Outcome{}, err
	}
	wanted := agent.RestoredFrom{UID: manifest.Backup.UID, Checksum: checksum, URL: r.env.URL, Version: manifest.Source.ServerVersion}
	if hasBackup(held) {
		if held.From.Is(wanted) {
			return r.adopt(held)
		}
		return protocol.Outcome{}, r.taken(held)
	}
	if err := r.fits(manifest, keys); err != nil {
		return protocol.Outcome{}, err
	}
	return r.restore(ctx, store, manifest, keys, wanted)
}

// certainlyTaken reports whether the existing data cannot be the backup, whatever the backup's manifest contains.
func (r restoreAttempt) certainlyTaken(held agent.VolumeContents) bool {
	if !hasBackup(held) {
		return held.Contents == agent.VolumeOccupied || r.env.AdoptOnly
	}
	return r.env.Checksum != "" && held.From.Checksum != "" && held.From.Checksum != r.env.Checksum
}

// hasBackup reports whether there is a restored backup.
func hasBackup(held agent.VolumeContents) bool {
	return held.Contents == agent.VolumeRestored || held.Contents == agent.VolumeStaged
}

// taken returns the refusal for existing data.
func (r restoreAttempt) taken(held agent.VolumeContents) error {
	if hasBackup(held) || held.Contents == agent.VolumeOccupied {
		return &agent.OccupiedError{Description: held.Description}
	}
	return refused(protocol.ReasonDataExists, "other members' volumes hold data, so the backup is not restored to this volume, which does not hold the backup but %s", held.Description)
}

// adopt accepts what an earlier run has restored.
func (r restoreAttempt) adopt(held agent.VolumeContents) (protocol.Outcome, error) {
	if err := r.place.finish(held.From); err != nil {
		return protocol.Outcome{}, err
	}
	if held.Used {
		r.env.Log.Info("nothing is restored: a cluster has used the volume since this backup was restored to it", "checksum", held.From.Checksum)
		return protocol.Outcome{Adopted: true, Used: true, Checksum: held.From.Checksum, UID: held.From.UID, Message: held.Description}, nil
	}
	r.env.Log.Info("this backup was restored here before", "checksum", held.From.Checksum)
	return protocol.Outcome{Adopted: true, Checksum: held.From.Checksum, UID: held.From.UID, ServerVersion: held.From.Version, Message: "this backup was restored here before"}, nil
}

// load reads the manifest and checks that it is the requested one.
func (r restoreAttempt) load(ctx context.Context, store *archive.Store) (archive.Manifest, string, error) {
	manifest, checksum, err := archive.Load(ctx, store)
	if err != nil {
		return manifest, "", err
	}
	if r.env.UID != "" && manifest.Backup.UID != r.env.UID {
		return manifest, "", refused(protocol.ReasonBackupForeign, "%s holds the backup of another instance: of %s/%s with UID %s, not %s", store.URL(), manifest.Backup.Namespace, manifest.Backup.Instance, manifest.Backup.UID, r.env.UID)
	}
	if r.env.Checksum != "" && checksum != r.env.Checksum {
		return manifest, "", refused(protocol.ReasonBackupForeign, "%s holds another backup than the requested one: its manifest has checksum %s, not %s", store.URL(), checksum, r.env.Checksum)
	}
	return manifest, checksum, nil
}

// fits makes the checks that do not need the data, before anything is written.
func (r restoreAttempt) fits(manifest archive.Manifest, keys encryption.Keys) error {
	if manifest.Encryption.Scheme != "" && len(keys.Identities) == 0 {
		return retry(protocol.ReasonEncryptionKeyNotFound, "the backup is encrypted for %v: provide the secret key of one of these (key %q of the encryption Secret)", manifest.Encryption.Recipients, protocol.KeyIdentity)
	}
	if r.env.Layout.Volume != "" {
		if err := fitSettings(manifest.Settings, r.env.ServerSettings); err != nil {
			return err
		}
	}
	free, err := r.place.free()
	if err != nil {
		return err
	}
	if needed := leastSpace(manifest); free < needed {
		return refused(protocol.ReasonVolumeTooSmall, "the backup takes about %s, and the volume has %s free: make it larger (spec.storage)", protocol.Size(manifest.Data.Size), protocol.Size(free))
	}
	return nil
}

// leastSpace is certainly less than the data needs: file systems may compress a little, or keep holes as holes. If the data does not fit
// after all, the restore ends with a full volume, which is harmless.
func leastSpace(manifest archive.Manifest) int64 { return manifest.Data.Size / 10 * 9 }

// restore writes the data to a temporary folder, and moves it to its place when all of it is checked and flushed.
func (r restoreAttempt) restore(ctx context.Context, store *archive.Store, manifest archive.Manifest, keys encryption.Keys, from agent.RestoredFrom) (protocol.Outcome, error) {
	r.env.Log.Info("restoring", "instance", manifest.Backup.Instance, "version", manifest.Source.ServerVersion, "bytes", manifest.Data.Bytes, "from", store.URL())
	r.meter.stage("restoring")
	r.meter.total(manifest.Data.Raw)
	root, err := r.place.begin()
	if err != nil {
		return protocol.Outcome{}, err
	}
	into, err := r.directory(root)
	if err != nil {
		return protocol.Outcome{}, r.written(err)
	}
	options := archive.ReadOptions{Identities: keys.Identities, Limit: r.env.Bandwidth, Progress: r.meter.done}
	err = archive.Extract(ctx, store, manifest, options, into)
	if err == nil {
		r.meter.stage("flushing")
		err = into.Finish()
	}
	if err := errors.Join(err, into.Close()); err != nil {
		return protocol.Outcome{}, r.written(err)
	}
	if err := r.place.finish(from); err != nil {
		return protocol.Outcome{}, r.written(err)
	}
	outcome := outcomeOf(manifest, from.Checksum)
	outcome.Message = fmt.Sprintf("restored backup %s of cluster %s/%s", manifest.Backup.Instance, manifest.Backup.Namespace, manifest.Backup.Cluster)
	if r.env.Layout.Volume == "" {
		outcome.Message += startedWith(manifest.Settings)
	}
	return outcome, nil
}

// written distinguishes a full volume from a full destination.
func (r restoreAttempt) written(err error) error {
	if _, ofStore := errors.AsType[*destination.StoreError](err); isFull(err) && !ofStore {
		return refused(protocol.ReasonVolumeTooSmall, "the volume became full during the restore: make it larger (spec.storage): %w", err)
	}
	return err
}
