// Package rootfs runs real mysqlds for tests, with the programs and libraries of a MySQL image's root file system and without a container:
//
//	MYSQLD_ROOTFS=/path/to/rootfs go test ./reconcile/mysql/...
package rootfs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/sizing"
)

const variable = "MYSQLD_ROOTFS"

// Need returns the root file system, and skips the test if there is none.
func Need(tb testing.TB) string {
	tb.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		tb.Skipf("needs a real mysqld: set %s to the root file system of a MySQL image", variable)
	}
	return folder
}

// Mysqld returns a command that runs mysqld. defaults is --no-defaults or --defaults-file=FILE.
func Mysqld(ctx context.Context, rootfs, defaults string, arguments ...string) *exec.Cmd {
	all := append([]string{
		defaults, "--user=root", "--basedir=" + rootfs + "/usr",
		"--plugin-dir=" + rootfs + "/usr/lib/mysql/plugin", "--lc-messages-dir=" + rootfs + "/usr/share/mysql",
		"--character-sets-dir=" + rootfs + "/usr/share/mysql/charsets",
	}, arguments...)
	return Program(ctx, rootfs, "sbin/mysqld", all...)
}

// Program returns a command that runs a program of the image with the image's own loader and libraries. name is its path in /usr.
func Program(ctx context.Context, rootfs, name string, arguments ...string) *exec.Cmd {
	libraries := rootfs + "/usr/lib/x86_64-linux-gnu:" + rootfs + "/usr/lib/mysql/private:" + rootfs + "/usr/lib64"
	all := append([]string{"--library-path", libraries, rootfs + "/usr/" + name}, arguments...)
	return exec.CommandContext(ctx, rootfs+"/usr/lib64/ld-linux-x86-64.so.2", all...)
}

// Small returns the settings of a small member as arguments. With MySQL's defaults, each start would take about another second of processor
// time, most of it for performance_schema.
func Small() []string {
	settings := sizing.Tune(sizing.Resources{Memory: 512 << 20, CPU: 2000})
	arguments := make([]string, 0, len(settings))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		arguments = append(arguments, "--loose_"+name+"="+settings[name])
	}
	return arguments
}

// NewData creates a data directory like that of mysqld --initialize-insecure, with its own server UUID. It copies a template, because an
// initialization takes several seconds of processor time. The template is created once for each image.
func NewData(tb testing.TB, rootfs, data string) {
	tb.Helper()
	if err := CopyData(tb.Context(), rootfs, data); err != nil {
		tb.Fatal(err)
	}
}

// CopyData is NewData for programs that are no tests.
func CopyData(ctx context.Context, rootfs, data string) error {
	template, err := template(ctx, rootfs)
	if err != nil {
		return err
	}
	// Copy without holes: a mysqld that fills a hole on a full volume dies, but it waits for space to extend a file.
	if output, err := exec.CommandContext(ctx, "cp", "-aT", "--sparse=never", template, data).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w\n%s", template, err, output)
	}
	// The next start creates another UUID.
	if err := os.Remove(filepath.Join(data, "auto.cnf")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// template returns an initialized data directory. It is next to the root file system, and its name depends on the mysqld that created it.
func template(ctx context.Context, rootfs string) (string, error) {
	program, err := os.Stat(rootfs + "/usr/sbin/mysqld")
	if err != nil {
		return "", fmt.Errorf("find mysqld: %w", err)
	}
	name := fmt.Sprintf("mysql-data-%x", sha256.Sum256(fmt.Append(nil, program.Size(), program.ModTime().UnixNano())))
	folder := filepath.Join(filepath.Dir(rootfs), name[:len("mysql-data-")+16])
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	made, err := os.MkdirTemp(filepath.Dir(rootfs), "mysql-data-new")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(made) }()
	data := filepath.Join(made, "data")
	output, err := Mysqld(ctx, rootfs, "--no-defaults", "--datadir="+data, "--initialize-insecure").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("initialize a data directory: %w\n%s", err, output)
	}
	if err := os.Rename(data, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return folder, nil
}
