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
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// Environment has the arguments of a program and the paths that it uses. A Job sets them in a Pod, a person by hand.
type Environment struct {
	// Namespace, Cluster, Instance and UID identify the backup.
	Namespace, Cluster, Instance, UID string
	// URL is the backup's own folder.
	URL string
	// StoreDir is where the volume of a file URL is mounted; empty uses the URL's path as it is.
	StoreDir string
	// CredentialsDir holds the destination's Secret as files; empty for none.
	CredentialsDir string
	// RecipientFile and IdentityFile hold age keys, one a line; empty for none. A file that does not exist counts as none.
	RecipientFile, IdentityFile string
	// Checksum is the checksum of the only manifest to restore; empty accepts any.
	Checksum string
	// AdoptOnly restores nothing, and accepts only a volume to which this backup was restored before.
	AdoptOnly bool
	// UnfinishedOnly deletes only the data of attempts that never finished.
	UnfinishedOnly bool
	// Bandwidth is in bytes per second; 0 means the program's default.
	Bandwidth int64
	// Port is where the cluster's Services and members listen.
	Port int
	// Layout has the paths of a member's volume, the cluster's certificate and the accounts. Without a Volume, a restore uses Into.
	Layout agent.Layout
	// Into is the data directory to create by hand: it must not exist, or be empty.
	Into string
	// ServerSettings are the settings of the mysqld that will start with a member's volume, as DataSettings returns them. MySQL's defaults
	// apply to all others.
	ServerSettings map[string]string
	// ProgressPort is the port on which to answer the operator, which must present its certificate; 0 for none.
	ProgressPort int
	// Version is the operator's version.
	Version string
	Log     logr.Logger
	// Now returns the time.
	Now func() time.Time
}

// open opens the destination.
func (e Environment) open(ctx context.Context) (*archive.Store, error) {
	if e.CredentialsDir != "" {
		entries, err := os.ReadDir(e.CredentialsDir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		// These are kubelet's own entries. kubelet creates them for a missing Secret, too.
		entries = slices.DeleteFunc(entries, func(one os.DirEntry) bool { return strings.HasPrefix(one.Name(), "..") })
		if len(entries) == 0 {
			return nil, retry(protocol.ReasonCredentialsNotFound, "read credentials: there are none; create the Secret that the destination names, with the keys for its kind of store")
		}
	}
	return archive.Open(ctx, archive.Location{URL: e.URL, CredentialsDir: e.CredentialsDir, VolumeDir: e.StoreDir})
}

// keys reads the age keys; wanted is false if the backup needs none.
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
		return encryption.Keys{}, true, retry(protocol.ReasonEncryptionKeyNotFound, "read the encryption key: there is none; put age %s into the encryption Secret", e.keysWanted())
	}
	keys, err = encryption.ParseKeys(recipient, identity)
	if err != nil {
		return encryption.Keys{}, true, refused(protocol.ReasonEncryptionKeyInvalid, "read the encryption key: %w", err)
	}
	return keys, true, nil
}

// keysWanted describes the missing keys.
func (e Environment) keysWanted() string {
	if e.RecipientFile != "" {
		return fmt.Sprintf("public keys, under %q,", protocol.KeyRecipient)
	}
	return fmt.Sprintf("secret keys, under %q,", protocol.KeyIdentity)
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

// background runs the tasks that accompany a transfer (measuring, answering the operator) until the function that it returns is called.
func (e Environment) background(ctx context.Context, m *meter) (stop func()) {
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
