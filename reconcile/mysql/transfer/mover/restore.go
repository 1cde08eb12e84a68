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
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

// RunRestore puts a backup on a member's volume, or into a folder by hand. What is there is looked at first: this very backup is success,
// and the destination need not even exist any more; other data is never touched. Then everything that could speak against the backup is
// asked before the first byte is written. Killed at any point, it carries on or begins again when it is run again.
func RunRestore(ctx context.Context, env Environment) (transfer.Outcome, error) {
	outcome, err := restoring{env: env, meter: &meter{}, place: env.place(), directory: newDirectory}.run(ctx)
	return outcome, interrupted(ctx, err)
}

func (e Environment) place() place {
	if e.Layout.Volume != "" {
		return memberVolume{layout: e.Layout}
	}
	into, err := filepath.Abs(e.Into)
	if err != nil {
		into = filepath.Clean(e.Into) // there is no current directory, which looking at it will tell
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

// restoring is one attempt at a restore.
type restoring struct {
	env       Environment
	meter     *meter
	place     place
	directory func(root string) (directory, error)
}

func (r restoring) run(ctx context.Context) (transfer.Outcome, error) {
	defer r.env.beside(ctx, r.meter)()
	held, err := r.place.look()
	if err != nil {
		return transfer.Outcome{}, err
	}
	if r.certainlyTaken(held) {
		return transfer.Outcome{}, r.taken(held)
	}
	// A URL alone is no proof: another backup may be there by now.
	if known := (agent.RestoredFrom{UID: r.env.UID, Checksum: r.env.Checksum}); held.From.Is(known) {
		return r.adopt(held)
	}
	r.meter.stage("looking at the backup")
	keys, _, err := r.env.keys()
	if err != nil {
		return transfer.Outcome{}, err
	}
	store, err := r.env.open(ctx)
	if err != nil {
		return transfer.Outcome{}, err
	}
	defer func() { _ = store.Close() }()
	manifest, checksum, err := r.load(ctx, store)
	if err != nil {
		return transfer.Outcome{}, err
	}
	wanted := agent.RestoredFrom{UID: manifest.Backup.UID, Checksum: checksum, URL: r.env.URL, Version: manifest.Source.ServerVersion}
	if hasBackup(held) {
		if held.From.Is(wanted) {
			return r.adopt(held)
		}
		return transfer.Outcome{}, r.taken(held)
	}
	if err := r.fits(manifest, keys); err != nil {
		return transfer.Outcome{}, err
	}
	return r.restore(ctx, store, manifest, keys, wanted)
}

// certainlyTaken says whether what is there is not the backup, whatever its manifest says.
func (r restoring) certainlyTaken(held agent.Holding) bool {
	if !hasBackup(held) {
		return held.Contents == agent.VolumeOccupied || r.env.AdoptOnly
	}
	return r.env.Checksum != "" && held.From.Checksum != "" && held.From.Checksum != r.env.Checksum
}

// hasBackup says whether there is a restored backup.
func hasBackup(held agent.Holding) bool {
	return held.Contents == agent.VolumeRestored || held.Contents == agent.VolumeStaged
}

// taken refuses what is there.
func (r restoring) taken(held agent.Holding) error {
	if hasBackup(held) || held.Contents == agent.VolumeOccupied {
		return &agent.OccupiedError{What: held.What}
	}
	return refused(transfer.ReasonDataExists, "other members' volumes hold data, and this one does not hold this backup but %s: it is not restored beside them", held.What)
}

// adopt takes what an earlier run has restored.
func (r restoring) adopt(held agent.Holding) (transfer.Outcome, error) {
	if err := r.place.finish(held.From); err != nil {
		return transfer.Outcome{}, err
	}
	if held.Used {
		r.env.Log.Info("nothing is restored: a cluster has used the volume since this backup was restored to it", "checksum", held.From.Checksum)
		return transfer.Outcome{Adopted: true, Used: true, Checksum: held.From.Checksum, UID: held.From.UID, Message: held.What}, nil
	}
	r.env.Log.Info("this backup was restored here before", "checksum", held.From.Checksum)
	return transfer.Outcome{Adopted: true, Checksum: held.From.Checksum, UID: held.From.UID, ServerVersion: held.From.Version, Message: "this backup was restored here before"}, nil
}

// load reads the manifest and checks that it is the one that was asked for.
func (r restoring) load(ctx context.Context, store *archive.Store) (archive.Manifest, string, error) {
	manifest, checksum, err := archive.Load(ctx, store)
	if err != nil {
		return manifest, "", err
	}
	if r.env.UID != "" && manifest.Backup.UID != r.env.UID {
		return manifest, "", refused(transfer.ReasonBackupForeign, "%s holds the backup of another instance: of %s/%s with UID %s, not %s", store.URL(), manifest.Backup.Namespace, manifest.Backup.Instance, manifest.Backup.UID, r.env.UID)
	}
	if r.env.Checksum != "" && checksum != r.env.Checksum {
		return manifest, "", refused(transfer.ReasonBackupForeign, "%s holds another backup than was asked for: its manifest has checksum %s, not %s", store.URL(), checksum, r.env.Checksum)
	}
	return manifest, checksum, nil
}

// fits asks what could speak against restoring, before anything is written.
func (r restoring) fits(manifest archive.Manifest, keys encryption.Keys) error {
	if manifest.Encryption.Scheme != "" && len(keys.Identities) == 0 {
		return retry(transfer.ReasonEncryptionKeyNotFound, "the backup is encrypted for %v: the secret key of one of these is needed (key %q of the encryption Secret)", manifest.Encryption.Recipients, transfer.KeyIdentity)
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
		return refused(transfer.ReasonVolumeTooSmall, "the backup takes about %s, and the volume has %s free: make it larger (spec.storage)", transfer.Size(manifest.Data.Size), transfer.Size(free))
	}
	return nil
}

// leastSpace is less than what the data takes, for certain: file systems may compress a little, or keep holes as holes. What does not fit
// after all ends with the volume full, and harms nothing either.
func leastSpace(manifest archive.Manifest) int64 { return manifest.Data.Size / 10 * 9 }

// restore writes the data beside its place, and puts it there when all of it is checked and flushed.
func (r restoring) restore(ctx context.Context, store *archive.Store, manifest archive.Manifest, keys encryption.Keys, from agent.RestoredFrom) (transfer.Outcome, error) {
	r.env.Log.Info("restoring", "instance", manifest.Backup.Instance, "version", manifest.Source.ServerVersion, "bytes", manifest.Data.Bytes, "from", store.URL())
	r.meter.stage("restoring")
	r.meter.total(manifest.Data.Raw)
	root, err := r.place.begin()
	if err != nil {
		return transfer.Outcome{}, err
	}
	into, err := r.directory(root)
	if err != nil {
		return transfer.Outcome{}, r.written(err)
	}
	options := archive.ReadOptions{Identities: keys.Identities, Limit: r.env.Bandwidth, Progress: r.meter.done}
	err = archive.Extract(ctx, store, manifest, options, into)
	if err == nil {
		r.meter.stage("flushing")
		err = into.Finish()
	}
	if err := errors.Join(err, into.Close()); err != nil {
		return transfer.Outcome{}, r.written(err)
	}
	if err := r.place.finish(from); err != nil {
		return transfer.Outcome{}, r.written(err)
	}
	outcome := outcomeOf(manifest, from.Checksum)
	outcome.Message = fmt.Sprintf("restored backup %s of cluster %s/%s", manifest.Backup.Instance, manifest.Backup.Namespace, manifest.Backup.Cluster)
	if r.env.Layout.Volume == "" {
		outcome.Message += startedWith(manifest.Settings)
	}
	return outcome, nil
}

// written tells a full volume, which is ours, from a full destination.
func (r restoring) written(err error) error {
	if _, ofStore := errors.AsType[*destination.StoreError](err); isFull(err) && !ofStore {
		return refused(transfer.ReasonVolumeTooSmall, "the volume is full before all of the backup is on it: make it larger (spec.storage): %w", err)
	}
	return err
}
