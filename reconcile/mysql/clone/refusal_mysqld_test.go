package clone

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/test/rootfs"
)

// discard accepts everything and keeps nothing.
type discard struct{}

func (discard) Write(File, int64, []byte) error { return nil }
func (discard) Rename(string, string) error     { return nil }
func (discard) Remove(string) error             { return nil }

// TestRefusals has donors that cannot or must not provide a copy.
func TestRefusals(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	donor := newServer(t, "--innodb-directories="+outside)

	tests := map[string]struct {
		do, undo []string
		change   func(*Donor)
		want     func(error) bool
	}{
		"a wrong password": {
			change: func(d *Donor) { d.Account.Password = "wrong" },
			want:   func(err error) bool { return isDonorError(err, 1045) },
		},
		"a login that is in the server's cache, and one that is not": {
			do:   []string{"ALTER USER clone IDENTIFIED BY 'another'", "FLUSH PRIVILEGES"},
			undo: []string{"ALTER USER clone IDENTIFIED BY 'clone me'", "FLUSH PRIVILEGES"},
			want: func(err error) bool { return isDonorError(err, 1045) },
		},
		"an account that may not back up": {
			do:   []string{"REVOKE BACKUP_ADMIN ON *.* FROM clone"},
			undo: []string{"GRANT BACKUP_ADMIN ON *.* TO clone"},
			want: func(err error) bool { return isDonorError(err, 1227) },
		},
		"a certificate of another authority": {
			change: func(d *Donor) { d.TLS.RootCAs = x509.NewCertPool() },
			want: func(err error) bool {
				var unknown x509.UnknownAuthorityError
				return errors.As(err, &unknown)
			},
		},
		"no TLS": {
			change: func(d *Donor) { d.TLS = nil },
			want:   func(err error) bool { return strings.Contains(err.Error(), "TLS is not configured") },
		},
		"no server": {
			change: func(d *Donor) { d.Port = 1 },
			want:   func(err error) bool { return strings.Contains(err.Error(), "connection refused") },
		},
		"a table outside of the data directory": {
			do:   []string{"CREATE DATABASE far", "CREATE TABLE far.away (id INT PRIMARY KEY) DATA DIRECTORY = '" + outside + "'"},
			undo: []string{"DROP DATABASE far"},
			want: func(err error) bool {
				var unsupported *UnsupportedError
				return errors.As(err, &unsupported) && unsupported.File == filepath.Join(outside, "far", "away.ibd")
			},
		},
		"a donor with its redo log switched off": {
			do:   []string{"ALTER INSTANCE DISABLE INNODB REDO_LOG"},
			undo: []string{"ALTER INSTANCE ENABLE INNODB REDO_LOG"},
			want: func(err error) bool { return isDonorError(err, 3983) },
		},
	}
	for reason, test := range tests { //nolint:paralleltest // they share a donor
		t.Run(reason, func(t *testing.T) {
			donor.exec(t, test.do...)
			defer donor.exec(t, test.undo...)
			to := donor.donor()
			if test.change != nil {
				test.change(&to)
			}
			_, err := Copy(t.Context(), to, discard{}, Observer{})
			if err == nil || !test.want(err) {
				t.Errorf("error is %v", err)
			}
			t.Log(err)
		})
	}
	t.Run("afterwards a copy", func(t *testing.T) { //nolint:paralleltest // they share a donor
		result, err := Copy(t.Context(), donor.donor(), discard{}, Observer{})
		if err != nil {
			t.Fatal(err)
		}
		checkResult(t, donor, result)
	})
	t.Run("a donor that serves another recipient", func(t *testing.T) { //nolint:paralleltest // they share a donor
		var second error
		_, err := Copy(t.Context(), donor.donor(), discard{}, Observer{Stage: func(stage Stage) error {
			if stage == StagePages {
				_, second = Copy(t.Context(), donor.donor(), discard{}, Observer{})
			}
			return nil
		}})
		if err != nil || !IsBusy(second) {
			t.Errorf("errors are %v, %v", err, second)
		}
	})
	t.Run("a donor that refuses clients meanwhile", func(t *testing.T) { //nolint:paralleltest // they share a donor
		const offlineMode = 3032 // ER_SERVER_OFFLINE_MODE
		_, err := Copy(t.Context(), donor.donor(), discard{}, Observer{Stage: func(stage Stage) error {
			if stage == StagePages {
				donor.exec(t, "SET GLOBAL offline_mode = ON")
			}
			return nil
		}})
		if err == nil {
			t.Error("it gives the whole copy")
		}
		if _, err := Copy(t.Context(), donor.donor(), discard{}, Observer{}); !isDonorError(err, offlineMode) {
			t.Errorf("another copy: %v", err)
		}
		donor.exec(t, "SET GLOBAL offline_mode = OFF")
		if _, err := Copy(t.Context(), donor.donor(), discard{}, Observer{}); err != nil {
			t.Errorf("the next copy: %v", err)
		}
	})
	t.Run("a recipient that vanishes", func(t *testing.T) { //nolint:paralleltest // they share a donor
		vanish(t, donor)
		if _, err := Copy(t.Context(), donor.donor(), discard{}, Observer{}); err != nil {
			t.Errorf("the next copy: %v", err)
		}
	})
}

func isDonorError(err error, number int) bool {
	var donor *DonorError
	return errors.As(err, &donor) && donor.Number == number
}

// checkResult checks the fields that a manifest needs.
func checkResult(t *testing.T, donor *server, result Result) {
	t.Helper()
	if result.ServerVersion != donor.value(t, "SELECT @@version") || result.ServerUUID != donor.value(t, "SELECT @@server_uuid") {
		t.Errorf("server is %s, %s", result.ServerVersion, result.ServerUUID)
	}
	for _, name := range []string{"innodb_page_size", "innodb_data_file_path", "lower_case_table_names", "character_set_server", "collation_server"} {
		if result.Settings[name] != donor.value(t, "SELECT @@GLOBAL."+name) {
			t.Errorf("%s is %q", name, result.Settings[name])
		}
	}
	if !slices.Contains(result.Plugins, Plugin{Name: "clone", Library: "mysql_clone.so"}) || !slices.Contains(result.Collations, "utf8mb4_0900_ai_ci") {
		t.Errorf("plugins %v, collations %v", result.Plugins, result.Collations)
	}
	if result.Files < 6 || result.Bytes < 50<<20 {
		t.Errorf("%d files, %d bytes", result.Files, result.Bytes)
	}
	t.Log(result.Settings)
}

// vanish is a recipient whose process dies: its connections close without COM_EXIT.
func vanish(t *testing.T, donor *server) {
	t.Helper()
	c := &copier{donor: donor.donor(), result: Result{Settings: map[string]string{}}}
	if err := c.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := c.run(&ending{active: true, end: func() error {
		c.main.close()
		c.second.close()
		return nil
	}})
	if err == nil {
		t.Error("the copy continues with closed connections")
	}
}

// TestSameFilesAsCloneLocal compares the files with those of MySQL's own recipient for the same data.
func TestSameFilesAsCloneLocal(t *testing.T) {
	t.Parallel()
	filled := newServer(t)
	fill(t, filled, size(t))
	filled.exec(t, "SET GLOBAL innodb_fast_shutdown = 0")
	filled.stop(t)
	donor := startServer(t, filled.rootfs, filled.data) // everything is on the disk, and there is nothing to purge
	golden, ours := filepath.Join(t.TempDir(), "golden"), filepath.Join(t.TempDir(), "ours")
	donor.exec(t, "CLONE LOCAL DATA DIRECTORY = '"+golden+"'")
	donor.copyTo(t, ours, Observer{})
	checkFirstPages(t, golden)
	want, got := listing(t, golden), listing(t, ours)
	// The result of the CLONE statement, for performance_schema of the server on which it ran.
	delete(want, "#clone/#view_status")
	delete(want, "#clone/#view_progress")
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("files (-CLONE LOCAL +ours):\n%s", difference)
	}
	for name, size := range want {
		if size < 0 || strings.HasPrefix(name, "#innodb_redo/") { // the redo log is of another moment
			continue
		}
		differ := differentPages(t, filepath.Join(golden, name), filepath.Join(ours, name))
		if len(differ) == 0 {
			continue
		}
		// The donor's own tables and transactions change without a client, so also between the two copies.
		if !slices.Contains([]string{"mysql.ibd", "ibdata1", "undo_001", "undo_002", "undo_extra.ibu"}, name) {
			t.Errorf("%s: pages %v differ", name, differ)
		}
		t.Logf("%s: pages %v differ", name, differ)
	}
}

// checkFirstPages compares our first pages with those of real tablespaces.
func checkFirstPages(t *testing.T, root string) {
	t.Helper()
	checked := map[pageSizes]int{}
	for name := range listing(t, root) {
		if !strings.HasSuffix(name, ".ibd") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		flags := binary.BigEndian.Uint32(data[spaceFlags:])
		sizes, err := pageSizesOf(flags)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		page := data[:sizes.physical]
		sum := checksum(page)
		if sizes.physical < sizes.logical {
			sum = compressedChecksum(page)
		}
		if stored := binary.BigEndian.Uint32(page[pageChecksum:]); stored != sum {
			t.Errorf("%s: checksum is %#x, ours %#x", name, stored, sum)
		}
		if binary.BigEndian.Uint32(page[pageSpace:]) != binary.BigEndian.Uint32(page[spaceID:]) || binary.BigEndian.Uint32(page[pageServerVersion:])/10000 < 8 ||
			binary.BigEndian.Uint32(page[pageSpaceVersion:]) != currentSpaceVersion {
			t.Errorf("%s: first page begins with %x", name, page[:64])
		}
		checked[sizes]++
	}
	if checked[pageSizes{16 << 10, 16 << 10}] == 0 || checked[pageSizes{16 << 10, 4 << 10}] == 0 {
		t.Errorf("checked %v", checked)
	}
}

// listing returns the sizes of all files; folders have -1.
func listing(t *testing.T, root string) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sizes[name] = info.Size()
		if entry.IsDir() {
			sizes[name] = -1
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sizes
}

// differentPages returns the numbers of the pages in which two files differ.
func differentPages(t *testing.T, golden, ours string) []int {
	t.Helper()
	const page = 16 << 10
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	var differ []int
	for i := 0; i*page < min(len(want), len(got)); i++ {
		if !bytes.Equal(want[i*page:min(len(want), (i+1)*page)], got[i*page:min(len(got), (i+1)*page)]) {
			differ = append(differ, i)
		}
	}
	return differ
}

// TestUnfinishedDirectory has an interrupted copy: mysqld must not start on it.
func TestUnfinishedDirectory(t *testing.T) {
	t.Parallel()
	donor := newServer(t)
	root := filepath.Join(t.TempDir(), "unfinished")
	directory, err := NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Copy(t.Context(), donor.donor(), directory, Observer{}); err != nil {
		t.Fatal(err)
	}
	if err := directory.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	output, err := rootfs.Mysqld(ctx, donor.rootfs, "--no-defaults", "--datadir="+root, "--socket="+filepath.Join(t.TempDir(), "s"), "--skip-networking", "--secure-file-priv=NULL", "--mysqlx=OFF").CombinedOutput()
	var exit *exec.ExitError
	if ctx.Err() != nil || !errors.As(err, &exit) || !strings.Contains(string(output), "Incomplete cloned data directory") {
		t.Errorf("mysqld: %v\n%s", err, output)
	}
	if _, err := NewDirectory(root); err == nil {
		t.Error("a copy begins in the folder of another copy")
	}
}
