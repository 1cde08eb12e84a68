package mover

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/go-logr/logr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// fakeMember is a mysqld as a backup uses it. It commits a transaction at each query.
type fakeMember struct {
	host, uuid string
	primary    bool
	commits    *int
	err        error
}

func (m fakeMember) ObserveDonor(context.Context) (mysqld.Donor, error) {
	if m.err != nil {
		return mysqld.Donor{}, m.err
	}
	*m.commits++
	executed, err := replication.ParseGTIDSet(fmt.Sprintf("%s:1-%d", sourceUUID, *m.commits))
	if err != nil {
		return mysqld.Donor{}, err
	}
	pending, err := replication.ParseGTIDSet(fmt.Sprintf("%s:%d", sourceUUID, *m.commits+1))
	return mysqld.Donor{Host: m.host, ServerUUID: m.uuid, Version: "9.7.4", Primary: m.primary, Executed: executed, Pending: pending}, err
}

func (m fakeMember) ObserveActivity(context.Context) (int64, error) { return 0, m.err }

func (fakeMember) Close() error { return nil }

const sourceUUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

const replica = "db-1.db-pods.shop.svc"

// copied is the final content of the fake donor's data directory, by file name.
func copied() map[string][]byte {
	return map[string][]byte{
		"ibdata1":                 bytes.Repeat([]byte("system."), 20000),
		"shop/orders.ibd":         bytes.Repeat([]byte("order 17;"), 50000),
		"#innodb_redo/#ib_redo12": bytes.Repeat([]byte{7}, 70000),
	}
}

// giveCopy is a clone of these files: first the original files, then the changed pages, then the redo log.
func giveCopy(sink clone.Sink, observer clone.Observer) (clone.Result, error) {
	result := clone.Result{ServerVersion: "9.7.4", ServerUUID: "uuid-of-db-1", Settings: map[string]string{"innodb_page_size": "16384"},
		Plugins: []clone.Plugin{{Name: "InnoDB"}, {Name: "clone", Library: "mysql_clone.so"}}}
	write := func(name string, offset int, data []byte) error {
		result.Bytes += int64(len(data))
		return sink.Write(clone.File{Name: name, Size: int64(len(copied()[name]))}, int64(offset), data)
	}
	observer.Estimated(500000)
	if err := observer.Stage(clone.StageFiles); err != nil {
		return result, err
	}
	for _, name := range []string{"ibdata1", "shop/orders.ibd"} {
		stale := bytes.ReplaceAll(copied()[name], []byte("17"), []byte("16"))
		half := len(stale) / 2
		if err := errors.Join(write(name, 0, stale[:half]), write(name, half, stale[half:])); err != nil {
			return result, err
		}
	}
	if err := observer.Stage(clone.StagePages); err != nil {
		return result, err
	}
	if err := write("shop/orders.ibd", 0, copied()["shop/orders.ibd"]); err != nil {
		return result, err
	}
	if err := errors.Join(observer.Stage(clone.StageRedo), observer.MomentPassed()); err != nil {
		return result, err
	}
	if err := write("#innodb_redo/#ib_redo12", 0, copied()["#innodb_redo/#ib_redo12"]); err != nil {
		return result, err
	}
	result.Files = len(copied())
	return result, observer.Stage(clone.StageDone)
}

// shop is the cluster that these tests back up, and a volume for the backups.
type shop struct {
	env     Environment
	members members
	commits int
	// settings are the members' settings; nil for those that a copy reports.
	settings map[string]string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	s.env = Environment{
		Namespace: "shop", Cluster: "db", Instance: "nightly-1", UID: "0a1b", URL: "file:///shop/db/nightly-1", StoreDir: t.TempDir(), Port: 3306,
		Version: "v1", Log: logr.Discard(), Now: time.Now,
	}
	s.members = members{
		wait: 50 * time.Millisecond, pause: time.Millisecond, busyWait: 50 * time.Millisecond, busyPause: time.Millisecond,
		connect: func(string) (server, error) {
			return fakeMember{host: replica, uuid: "uuid-of-db-1", commits: &s.commits}, nil
		},
		copy: func(_ context.Context, _ string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
			result, err := giveCopy(sink, observer)
			if s.settings != nil {
				result.Settings = s.settings
			}
			return result, err
		},
	}
	return s
}

func (s *shop) backup(ctx context.Context) (protocol.Outcome, error) {
	outcome, err := backupAttempt{env: s.env, meter: &meter{}, members: s.members}.run(ctx)
	return outcome, interrupted(ctx, err)
}

func (s *shop) mustBackup(t *testing.T) protocol.Outcome {
	t.Helper()
	outcome, err := s.backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func (s *shop) load(t *testing.T) (archive.Manifest, error) {
	t.Helper()
	store, err := archive.Open(t.Context(), archive.Location{URL: s.env.URL, VolumeDir: s.env.StoreDir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	manifest, _, err := archive.Load(t.Context(), store)
	return manifest, err
}

// backupDir is the folder of these tests' backup.
func backupDir(env Environment) string {
	return filepath.Join(env.StoreDir, "shop", "db", "nightly-1")
}

// stored are the files at the destination.
func (s *shop) stored(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(s.env.StoreDir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, entry.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func reasonOf(err error) string {
	reason, _ := judge(err, "none")
	return reason
}

func TestBackupTellsWhatItMade(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	outcome := s.mustBackup(t)
	manifest, err := s.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Source != "db-1" || outcome.ServerVersion != "9.7.4" || outcome.UID != "0a1b" || outcome.Instance != "nightly-1" ||
		outcome.DataSize != manifest.Data.Size || outcome.Size != manifest.Stored() || outcome.Size == 0 || !strings.HasPrefix(outcome.Checksum, "sha256:") {
		t.Errorf("the outcome is %+v for the manifest %+v", outcome, manifest)
	}
	// The program queried it as a Service, as a member, before the redo log, and after the moment of the copy; then one more transaction is
	// about to commit.
	if manifest.GTIDs.AtLeast != sourceUUID+":1-3" || outcome.GTIDExecuted != manifest.GTIDs.AtLeast || manifest.GTIDs.AtMost != sourceUUID+":1-5" {
		t.Errorf("transactions from %s to %s", manifest.GTIDs.AtLeast, manifest.GTIDs.AtMost)
	}
	if manifest.Source.Host != replica || manifest.Source.ServerUUID != "uuid-of-db-1" || manifest.Source.Primary || manifest.OperatorVersion != "v1" ||
		manifest.Settings["innodb_page_size"] != "16384" || len(manifest.Plugins) != 1 || manifest.Data.Files != 3 {
		t.Errorf("the manifest is %+v", manifest)
	}
}

func TestBackupSpeaksToTheMemberThatAnswered(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var hosts []string
	connect, take := s.members.connect, s.members.copy
	s.members.connect = func(host string) (server, error) {
		hosts = append(hosts, host)
		return connect(host)
	}
	s.members.copy = func(ctx context.Context, host string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
		hosts = append(hosts, host)
		return take(ctx, host, sink, observer)
	}
	s.mustBackup(t)
	if got := strings.Join(hosts, " "); got != "db-read.shop.svc "+replica+" "+replica {
		t.Errorf("it connected to %s", got)
	}
}

func TestBackupWaitsForAMemberButNotForEver(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.members.wait = time.Minute
	connect, tries := s.members.connect, 0
	s.members.connect = func(host string) (server, error) {
		tries++
		if tries < 3 {
			return nil, errors.New("connection refused")
		}
		return connect(host)
	}
	s.mustBackup(t)

	s = newShop(t)
	s.members.connect = func(string) (server, error) { return nil, errors.New("connection refused") }
	_, err := s.backup(t.Context())
	if reasonOf(err) != protocol.ReasonDonorUnavailable || !strings.Contains(err.Error(), "db-read.shop.svc") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("no member answers: %v", err)
	}
	if files := s.stored(t); len(files) > 0 {
		t.Errorf("it leaves %v", files)
	}
}

// TestBackupTellsWhereItsTimeWent: the test knows the minimum time of each part, and the sum must not exceed the whole.
func TestBackupTellsWhereItsTimeWent(t *testing.T) {
	t.Parallel()
	const pause = 20 * time.Millisecond
	s := newShop(t)
	s.members.busyWait, s.members.busyPause = time.Minute, pause
	take, tries := s.members.copy, 0
	s.members.copy = func(ctx context.Context, host string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
		tries++
		if tries < 2 {
			return clone.Result{}, &clone.DonorError{Number: 3634, Message: "too many"}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		return take(ctx, host, sink, observer)
	}
	began := time.Now()
	spent := s.mustBackup(t).Spent
	took := time.Since(began).Milliseconds()
	if spent == nil || spent.Wait < pause.Milliseconds() || spent.Copy < pause.Milliseconds()-1 || spent.Rest < 0 || spent.Upload < 0 || spent.Finish < 0 ||
		spent.Wait+spent.Copy+spent.Rest+spent.Upload+spent.Finish > took {
		t.Errorf("it reports %+v for %d ms", spent, took)
	}
	if again := s.mustBackup(t); again.Spent != nil {
		t.Errorf("for an earlier attempt it reports %+v", again.Spent)
	}
}

func TestBackupWaitsForAMemberThatIsBusy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.members.busyWait = time.Minute
	take, tries := s.members.copy, 0
	s.members.copy = func(ctx context.Context, host string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
		tries++
		if tries < 3 {
			return clone.Result{}, fmt.Errorf("copy %s: %w", host, &clone.DonorError{Number: 3634, Message: "too many"})
		}
		return take(ctx, host, sink, observer)
	}
	s.mustBackup(t)
	ctx, cancel := context.WithCancel(t.Context())
	s = newShop(t)
	s.members.busyWait, s.members.busyPause = time.Minute, time.Minute
	s.members.copy = func(context.Context, string, clone.Sink, clone.Observer) (clone.Result, error) {
		cancel()
		return clone.Result{}, &clone.DonorError{Number: 3634, Message: "too many"}
	}
	if _, err := s.backup(ctx); reasonOf(err) != protocol.ReasonInterrupted {
		t.Errorf("stopped while it waits: %v", err)
	}
}

func TestBackupNeverMixesTwoServers(t *testing.T) {
	t.Parallel()
	other := func(s *shop, when int) {
		connect, calls := s.members.connect, 0
		s.members.connect = func(host string) (server, error) {
			calls++
			if calls >= when {
				return fakeMember{host: replica, uuid: "another", commits: &s.commits}, nil
			}
			return connect(host)
		}
	}
	s := newShop(t)
	other(s, 2)
	s.members.wait = 0
	if _, err := s.backup(t.Context()); reasonOf(err) != protocol.ReasonDonorUnavailable || !strings.Contains(err.Error(), "is not the server") {
		t.Errorf("the name leads elsewhere: %v", err)
	}
	s = newShop(t)
	s.members.copy = func(_ context.Context, _ string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
		result, err := giveCopy(sink, observer)
		result.ServerUUID = "another"
		return result, err
	}
	if _, err := s.backup(t.Context()); reasonOf(err) != protocol.ReasonCopyFailed {
		t.Errorf("the copy is of another server: %v", err)
	}
	if _, err := s.load(t); err == nil {
		t.Error("it is kept as a backup")
	}
}

// TestBackupThatFailsLeavesNothing: for a failure of any kind and at any place, the program reports the reason, and nothing is left that
// looks like a backup.
func TestBackupThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	for stage := clone.StageFiles; stage <= clone.StageDone; stage++ {
		for name, cause := range map[string]error{
			protocol.ReasonDonorBusy:  &clone.DonorError{Number: 3634, Message: "too many"},
			protocol.ReasonCopyFailed: errors.New("connection reset"),
		} {
			t.Run(fmt.Sprint(stage, " ", name), func(t *testing.T) {
				t.Parallel()
				s := newShop(t)
				s.members.copy = func(_ context.Context, _ string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
					watched := observer
					watched.Stage = func(now clone.Stage) error {
						if now == stage {
							return cause
						}
						return observer.Stage(now)
					}
					return giveCopy(sink, watched)
				}
				_, err := s.backup(t.Context())
				if outcome, status := Ended(protocol.Outcome{}, err, protocol.ReasonCopyFailed); outcome.Reason != name || status != protocol.ExitRetry {
					t.Errorf("%s with exit status %d (%v), want %s", outcome.Reason, status, err, name)
				}
				if files := s.stored(t); len(files) > 0 {
					t.Errorf("it leaves %v", files)
				}
			})
		}
	}
}

// TestBackupBeginsAgainAtAnotherMember: the one that was copied is replaced as the primary, and refuses clients. The next attempt copies
// the member to which the Service for reading leads by then.
func TestBackupBeginsAgainAtAnotherMember(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	take := s.members.copy
	s.members.copy = func(_ context.Context, _ string, sink clone.Sink, _ clone.Observer) (clone.Result, error) {
		if err := sink.Write(clone.File{Name: "ibdata1", Size: 9}, 0, []byte("123456789")); err != nil {
			return clone.Result{}, err
		}
		return clone.Result{}, &clone.DonorError{Number: 3032, Message: "The server is currently in offline mode"}
	}
	_, err := s.backup(t.Context())
	if outcome, status := Ended(protocol.Outcome{}, err, protocol.ReasonCopyFailed); status != protocol.ExitRetry {
		t.Errorf("%s with exit status %d: %v", outcome.Reason, status, err)
	}
	s.members.connect = func(string) (server, error) {
		return fakeMember{host: "db-2.db-pods.shop.svc", uuid: "uuid-of-db-2", commits: &s.commits}, nil
	}
	s.members.copy = func(ctx context.Context, host string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
		result, err := take(ctx, host, sink, observer)
		result.ServerUUID = "uuid-of-db-2"
		return result, err
	}
	if outcome := s.mustBackup(t); outcome.Source != "db-2" {
		t.Errorf("the next attempt copies %s", outcome.Source)
	}
}

func TestBackupToldToEndLeavesNothingAndTheNextAttemptWorks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	take := s.members.copy
	ctx, cancel := context.WithCancel(t.Context())
	s.members.copy = func(ctx context.Context, _ string, sink clone.Sink, observer clone.Observer) (clone.Result, error) {
		if err := sink.Write(clone.File{Name: "ibdata1", Size: 9}, 0, []byte("123456789")); err != nil {
			return clone.Result{}, err
		}
		cancel()
		<-ctx.Done()
		return clone.Result{}, ctx.Err()
	}
	if _, err := s.backup(ctx); reasonOf(err) != protocol.ReasonInterrupted {
		t.Errorf("%v", err)
	}
	if files := s.stored(t); len(files) > 0 {
		t.Errorf("it leaves %v", files)
	}
	s.members.copy = take
	s.mustBackup(t)
}

func TestBackupAfterOneThatWasKilledBeginsAnew(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	store, err := archive.Open(t.Context(), archive.Location{URL: s.env.URL, VolumeDir: s.env.StoreDir})
	if err != nil {
		t.Fatal(err)
	}
	killed, err := archive.Begin(t.Context(), store, archive.WriteOptions{Identity: archive.Identity{Namespace: "shop", Cluster: "db", Instance: "nightly-1", UID: "0a1b"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Write(clone.File{Name: "ibdata1", Size: 9}, 0, []byte("123456789")); err != nil {
		t.Fatal(err)
	}
	s.mustBackup(t)
	if _, err := s.load(t); err != nil {
		t.Error(err)
	}
}

func TestBackupThatWasMadeAndNotToldIsToldAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := s.mustBackup(t)
	s.members.connect = func(string) (server, error) { return nil, errors.New("the cluster is gone") }
	s.env.RecipientFile = filepath.Join(t.TempDir(), "gone")
	first.Spent = nil // which is no longer known
	if second := s.mustBackup(t); second != first {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func TestBackupNeverTakesAnothersFolder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := s.mustBackup(t)
	before := sumOf(t, s.env.StoreDir)
	s.env.UID = "another"
	_, err := s.backup(t.Context())
	if outcome, status := Ended(protocol.Outcome{}, err, ""); outcome.Reason != protocol.ReasonDestinationOccupied || status != protocol.ExitRefused {
		t.Errorf("%s with exit status %d: %v", outcome.Reason, status, err)
	}
	if _, err := RunDelete(t.Context(), s.env); reasonOf(err) != protocol.ReasonDestinationOccupied {
		t.Errorf("it deletes the data of another backup: %v", err)
	}
	if sumOf(t, s.env.StoreDir) != before {
		t.Errorf("the first backup, %s, is changed", first.Checksum)
	}
}

// sumOf is a checksum of the whole content of a folder.
func sumOf(t *testing.T, root string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d %s", path, len(content), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func TestBackupReadsAPrimaryGently(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		primary   bool
		asked     int64
		wantLimit int64
	}{
		"a replica":               {false, 0, 0},
		"a replica, slowly":       {false, 1000, 1000},
		"a primary":               {true, 0, DefaultPrimaryLimit},
		"a primary, with a limit": {true, 1 << 30, 1 << 30},
	} {
		from := source{Donor: mysqld.Donor{Primary: test.primary}}
		if limit := (backupAttempt{env: Environment{Bandwidth: test.asked}}).limit(from); limit != test.wantLimit {
			t.Errorf("%s: %d bytes a second, want %d", name, limit, test.wantLimit)
		}
	}
}

func TestBackupIsNeverMadeUnencryptedByMistake(t *testing.T) {
	t.Parallel()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		recipient, identity string
		reason              string
	}{
		"the Secret is missing":       {reason: protocol.ReasonEncryptionKeyNotFound},
		"the key is invalid":          {recipient: "ssh-rsa nonsense", reason: protocol.ReasonEncryptionKeyInvalid},
		"the key is empty":            {recipient: "# nothing\n", reason: protocol.ReasonEncryptionKeyInvalid},
		"a public key is enough":      {recipient: identity.Recipient().String()},
		"a secret key is enough, too": {identity: identity.String()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.env.RecipientFile, s.env.IdentityFile = keyFiles(t, test.recipient, test.identity)
			_, err := s.backup(t.Context())
			if test.reason != "" {
				if reasonOf(err) != test.reason || len(s.stored(t)) > 0 {
					t.Errorf("%v, and stores %v; want %s", err, s.stored(t), test.reason)
				}
				return
			}
			manifest, loadErr := s.load(t)
			if err != nil || loadErr != nil || manifest.Encryption.Scheme == "" {
				t.Errorf("%v, %v, encrypted by %q", err, loadErr, manifest.Encryption.Scheme)
			}
		})
	}
}

// keyFiles are the files of an encryption Secret; an empty key is missing.
func keyFiles(t *testing.T, recipient, identity string) (recipientFile, identityFile string) {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{protocol.KeyRecipient: recipient, protocol.KeyIdentity: identity} {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, protocol.KeyRecipient), filepath.Join(root, protocol.KeyIdentity)
}

func TestCredentialsThatAreMissingAreCalledSo(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	// This is what kubelet mounts for an optional Secret that is missing.
	mounted := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(mounted, "..2026_11_21"), 0o750), os.Symlink("..2026_11_21", filepath.Join(mounted, "..data"))); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{mounted, filepath.Join(t.TempDir(), "none")} {
		s.env.CredentialsDir = dir
		if _, err := s.backup(t.Context()); reasonOf(err) != protocol.ReasonCredentialsNotFound {
			t.Errorf("%v", err)
		}
	}
}

func TestDeleteRemovesTheDataAndThatThereIsNoneIsSuccess(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.mustBackup(t)
	for range 2 {
		outcome, err := RunDelete(t.Context(), s.env)
		if done, status := Ended(outcome, err, ""); done.Reason != protocol.ReasonCompleted || status != protocol.ExitDone {
			t.Errorf("%+v, %v", done, err)
		}
		if files := s.stored(t); len(files) > 0 {
			t.Errorf("left: %v", files)
		}
	}
}
