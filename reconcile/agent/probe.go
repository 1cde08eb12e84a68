package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// probeLog is where mysqld tells its version, in the folder given to ProbeCommand.
const probeLog = "mysqld.log"

// ProbeCommand is what a container of a MySQL image runs to leave its version in a folder of its own, before any data is put in the
// image's care. Nothing but mysqld is asked of the image, and the one thing that mysqld does without a data directory, ends with
// success and tells its version in a file is to make a data directory: three seconds and about 100 MiB. ProbedVersion reads it.
func ProbeCommand(folder string) []string {
	return []string{
		"mysqld", "--no-defaults", "--initialize-insecure", "--datadir=" + path.Join(folder, "data"), "--tmpdir=" + folder,
		"--log-error=" + path.Join(folder, probeLog), "--log-error-verbosity=1", "--skip-log-bin", "--auto-generate-certs=OFF",
		// Small and quick, for what is thrown away; loose_, since not every release knows them.
		"--loose-innodb-redo-log-capacity=8M", "--innodb-buffer-pool-size=8M", "--loose-performance-schema=OFF",
	}
}

// ProbedVersion is the version that mysqld told, for example 9.7.4, or 9.7.4-2 where a distribution has its own numbers.
func ProbedVersion(folder string) (string, error) {
	log, err := os.ReadFile(path.Join(folder, probeLog))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("learn the MySQL image's version: its mysqld has left no log")
	}
	if err != nil {
		return "", fmt.Errorf("learn the MySQL image's version: %w", err)
	}
	return versionIn(log)
}

// versionIn finds "mysqld (mysqld 9.7.4) initializing of server" (errmsg, ER_STARTING_INIT), which releases from 8.0 on write first.
func versionIn(log []byte) (string, error) {
	told := regexp.MustCompile(`\(mysqld (\d[^)\s]*)\) initializing of server`)
	for line := range bytes.Lines(log) {
		if found := told.FindSubmatch(line); found != nil {
			return string(found[1]), nil
		}
	}
	return "", errors.New("learn the MySQL image's version: its mysqld does not tell it in its log")
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
