package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// In the folder given to InstallProbe: this program, and the version that mysqld told it.
const (
	probeProgram = "mysql-operator"
	probeVersion = "version"
)

// probeTimeout bounds asking mysqld, which takes a tenth of a second.
const probeTimeout = time.Minute

// InstallProbe puts this program into a folder, for a container of a MySQL image to run it there (ProbeCommand): nothing is asked of such an
// image but mysqld, which tells its version on its standard output only, and no container can read another one's.
func InstallProbe(folder string) error {
	if err := copyProgram(filepath.Join(folder, probeProgram)); err != nil {
		return fmt.Errorf("install the program that asks a MySQL image for its version: %w", err)
	}
	return nil
}

func copyProgram(to string) (err error) {
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o555) //nolint:gosec // another container runs it, and it is no secret
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// ProbeCommand is what a container of a MySQL image runs to leave its version in the folder, before any data is put in the image's care.
// ProbedVersion reads it.
func ProbeCommand(folder string) []string {
	return []string{path.Join(folder, probeProgram), "server-version", "--into", folder}
}

// Probe asks mysqld for its version and leaves what it says in the folder.
func Probe(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	told, err := exec.CommandContext(ctx, "mysqld", "--no-defaults", "--version").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return fmt.Errorf("ask mysqld of this image for its version: %w", err)
	}
	if _, err := versionIn(told); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, probeVersion), told, 0o444) //nolint:gosec // another container reads it, and it is no secret
}

// ProbedVersion is the version that mysqld told, for example 9.7.4, or 9.7.4-2 where a distribution has its own numbers.
func ProbedVersion(folder string) (string, error) {
	told, err := os.ReadFile(filepath.Join(folder, probeVersion))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("learn the MySQL image's version: its mysqld was not asked")
	}
	if err != nil {
		return "", fmt.Errorf("learn the MySQL image's version: %w", err)
	}
	return versionIn(told)
}

// versionIn reads "/usr/sbin/mysqld  Ver 9.7.4 for Linux on x86_64 (MySQL Community Server - GPL)" (MySQL source, sql/mysqld.cc, print_version).
func versionIn(told []byte) (string, error) {
	found := regexp.MustCompile(`\bVer (\d\S*) for `).FindSubmatch(told)
	if found == nil {
		return "", fmt.Errorf("learn the MySQL image's version: its mysqld says %q", bytes.TrimSpace(told[:min(len(told), 200)]))
	}
	return string(found[1]), nil
}

// CanStart says why an image's mysqld cannot start on a copy of another server's data; nil if it can. A copy made while its server ran has to be
// recovered from its redo log, which MySQL does with a release of the same series only (manual, "Upgrade Paths"), and a later patch of a
// series may write what an earlier one does not know.
func CanStart(image, data string) error {
	have, err := parseVersion(image)
	if err != nil {
		return fmt.Errorf("compare the MySQL image's version: %w", err)
	}
	need, err := parseVersion(data)
	if err != nil {
		return fmt.Errorf("compare the backup's version: %w", err)
	}
	if have[0] != need[0] || have[1] != need[1] {
		return fmt.Errorf("the backup is of MySQL %s and the image has %s: a backup is started by its own series, so take an image of %d.%d first and change spec.image when the cluster is Ready", data, image, need[0], need[1])
	}
	if have[2] < need[2] {
		return fmt.Errorf("the backup is of MySQL %s and the image has %s, which is older: take an image of at least %d.%d.%d", data, image, need[0], need[1], need[2])
	}
	return nil
}

// parseVersion reads the numbers that a version begins with, such as 8.4.6 of 8.4.6-log.
func parseVersion(text string) ([3]int, error) {
	var numbers [3]int
	rest := text
	for i := range numbers {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		number, err := strconv.Atoi(rest[:digits])
		if err != nil {
			return numbers, fmt.Errorf("%q is no version of MySQL", text)
		}
		numbers[i], rest = number, strings.TrimPrefix(rest[digits:], ".")
	}
	return numbers, nil
}
