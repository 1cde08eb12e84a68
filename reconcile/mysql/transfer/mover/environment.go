package mover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/encryption"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
)

// Environment is what a program is told and where it finds things: in a Pod by its Job, by hand by a person.
type Environment struct {
	// Namespace, Cluster, Instance and UID are whose backup it is.
	Namespace, Cluster, Instance, UID string
	// URL is the backup's own folder.
	URL string
	// StoreDir is where the volume of a file URL is mounted; empty takes the URL's path as it is.
	StoreDir string
	// CredentialsDir holds the destination's Secret as files; empty for none.
	CredentialsDir string
	// RecipientFile and IdentityFile hold age keys, one a line; empty for none. One of two that does not exist is none either.
	RecipientFile, IdentityFile string
	// Checksum is that of the only manifest to restore; empty accepts every one.
	Checksum string
	// AdoptOnly restores nothing, and accepts a volume that this backup was restored to before.
	AdoptOnly bool
	// UnfinishedOnly deletes only what attempts have left that never came to their end.
	UnfinishedOnly bool
	// Bandwidth is in bytes per second; 0 leaves it to the program.
	Bandwidth int64
	// Port is where the cluster's Services and members listen.
	Port int
	// Layout is where a member's volume, the cluster's certificate and the accounts are. Without a Volume, a restore goes Into a folder.
	Layout agent.Layout
	// Into is the data directory to make by hand: it must not exist, or be empty.
	Into string
	// ServerSettings are those of the mysqld that is to start a member's volume, as far as DataSettings tells them; what is not among them has
	// MySQL's default.
	ServerSettings map[string]string
	// ProgressPort is where to answer the operator, which is asked for its certificate; 0 is nowhere.
	ProgressPort int
	// Version is the operator's.
	Version string
	Log     logr.Logger
	// Now is the time.
	Now func() time.Time
}

// open reaches the destination.
func (e Environment) open(ctx context.Context) (*archive.Store, error) {
	if e.CredentialsDir != "" {
		entries, err := os.ReadDir(e.CredentialsDir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		// kubelet's own begin so; it makes them for a Secret that is missing, too.
		entries = slices.DeleteFunc(entries, func(one os.DirEntry) bool { return strings.HasPrefix(one.Name(), "..") })
		if len(entries) == 0 {
			return nil, retry(transfer.ReasonCredentialsNotFound, "read credentials: there are none: make the Secret that the destination names, with the keys of its kind of store")
		}
	}
	return archive.Open(ctx, archive.Location{URL: e.URL, CredentialsDir: e.CredentialsDir, VolumeDir: e.StoreDir})
}

// keys reads the age keys; found is false where none are wanted.
func (e Environment) keys() (keys encryption.Keys, wanted bool, err error) {
	if e.RecipientFile == "" && e.IdentityFile == "" {
		return encryption.Keys{}, false, nil
	}
	recipient, err := keyFile(e.RecipientFile)
	if err != nil {
		return encryption.Keys{}, true, err
	}
	identity, err := keyFile(e.IdentityFile)
	if err != nil {
		return encryption.Keys{}, true, err
	}
	if len(recipient) == 0 && len(identity) == 0 {
		return encryption.Keys{}, true, retry(transfer.ReasonEncryptionKeyNotFound, "read the encryption key: there is none: put age %s into the encryption Secret", e.keysWanted())
	}
	keys, err = encryption.ParseKeys(recipient, identity)
	if err != nil {
		return encryption.Keys{}, true, refused(transfer.ReasonEncryptionKeyInvalid, "read the encryption key: %w", err)
	}
	return keys, true, nil
}

// keysWanted names the keys that were to be there.
func (e Environment) keysWanted() string {
	if e.RecipientFile != "" {
		return fmt.Sprintf("public keys, under %q,", transfer.KeyRecipient)
	}
	return fmt.Sprintf("secret keys, under %q,", transfer.KeyIdentity)
}

func keyFile(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the encryption key: %w", err)
	}
	return content, nil
}

// beside runs what goes on beside a transfer (measuring, answering the operator) until the function it returns is called.
func (e Environment) beside(ctx context.Context, m *meter) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { m.watch(ctx, e.Log) })
	if e.ProgressPort != 0 {
		running.Go(func() { e.serve(ctx, m) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}
