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

// ProbeSettings is the name of the file with the settings to check, in the program's folder.
const ProbeSettings = "my.cnf"

// probeTimeout bounds the calls of mysqld, which take a tenth of a second.
const probeTimeout = time.Minute

// InstallProbe puts this program, and settings to check if there are any, into a folder, for a container of a MySQL image to run it there
// (ProbeCommand). That image needs nothing but mysqld. mysqld prints its version only on its standard output, which no other container can
// read. The container of the MySQL image mounts the folder read-only.
func InstallProbe(folder, settings string) error {
	if err := copyProgram("/proc/self/exe", filepath.Join(folder, Program)); err != nil {
		return fmt.Errorf("install the program that asks a MySQL image for its version: %w", err)
	}
	if settings == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(folder, ProbeSettings), []byte(settings), 0o444); err != nil { //nolint:gosec // another container reads it
		return fmt.Errorf("write the settings to check: %w", err)
	}
	return nil
}

func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
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

// ProbeCommand returns the command with which a container of a MySQL image reports its version, which ReadVersion reads. With settings, a
// file, it also reports whether mysqld accepts them, which ReadAnswer reads.
func ProbeCommand(folder, report, settings string) []string {
	command := []string{path.Join(folder, Program), CommandVersion, "--report", report}
	if settings != "" {
		command = append(command, "--settings", settings)
	}
	return command
}

// Probe asks mysqld for its version, and with settings whether it accepts them, and writes only the answer to the report. It runs in a
// container of a user's image, and can do no more there than the image itself.
func Probe(ctx context.Context, report, settings string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	said, failed, err := askMysqld(ctx, "--no-defaults", "--version")
	if err != nil {
		return fmt.Errorf("ask mysqld of this image for its version: %w: %.256s", err, bytes.TrimSpace(failed))
	}
	version, err := versionIn(said)
	if err != nil {
		return err
	}
	answer := Answer{Version: version}
	if settings != "" {
		if answer, err = checkSettings(ctx, answer, settings); err != nil {
			return err
		}
	}
	return os.WriteFile(report, []byte(answer.report(settings != "")), 0o600)
}

func askMysqld(ctx context.Context, arguments ...string) (said, failed []byte, err error) {
	out, problems := &head{}, &head{}
	command := exec.CommandContext(ctx, "mysqld", arguments...) //nolint:gosec // the arguments are ours
	command.Stdout, command.Stderr = out, problems
	command.WaitDelay = time.Second // a program that mysqld started may keep its output open
	err = command.Run()
	return out.text, problems.text, err
}

// head keeps the beginning of the text that is written to it.
type head struct{ text []byte }

func (h *head) Write(text []byte) (int, error) {
	h.text = append(h.text, text[:min(len(text), longestOutput-len(h.text))]...)
	return len(text), nil
}

const (
	// longestReport is how many bytes of a report are read, longestOutput how many of mysqld's output.
	longestReport = 256
	longestOutput = 16 << 10
	// versionPattern matches versions of MySQL and its distributions: 9.7.4, 8.0.43-34, 9.7.4-2.
	versionPattern = `\d{1,4}\.\d{1,4}\.\d{1,4}(?:[-+~._][0-9A-Za-z][-+~._0-9A-Za-z]{0,63})?`
)

// ReadVersion reads a report from a container of a user's image, which the operator does not trust. It rejects anything but one version,
// and repeats nothing of it.
func ReadVersion(report string) (version string, ok bool) {
	if len(report) > longestReport || !regexp.MustCompile(`^`+versionPattern+`$`).MatchString(report) {
		return "", false
	}
	return report, true
}

// versionIn reads "/usr/sbin/mysqld  Ver 9.7.4 for Linux on x86_64 (MySQL Community Server - GPL)" (MySQL source, sql/mysqld.cc,
// print_version).
func versionIn(told []byte) (string, error) {
	found := regexp.MustCompile(`\bVer (` + versionPattern + `) for `).FindSubmatch(told)
	if found == nil {
		return "", fmt.Errorf("read the MySQL image's version: its mysqld prints %.256q", bytes.TrimSpace(told))
	}
	return string(found[1]), nil
}

// CanStart returns why an image's mysqld cannot start on a copy of another server's data; nil if it can. A copy of a running server must be
// recovered from its redo log, which MySQL supports only with a release of the same series (manual, "Upgrade Paths"). A later patch release
// may write what an earlier one cannot read.
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
		return fmt.Errorf("the backup is of MySQL %s and the image has %s: only an image of the same series can start a backup; use an image of %d.%d first, and change spec.image when the cluster is Ready", data, image, need[0], need[1])
	}
	if have[2] < need[2] {
		return fmt.Errorf("the backup is of MySQL %s and the image has %s, which is older: use an image of at least %d.%d.%d", data, image, need[0], need[1], need[2])
	}
	return nil
}

// parseVersion reads the numbers at the start of a version, such as 8.4.6 of 8.4.6-log.
func parseVersion(text string) ([3]int, error) {
	var numbers [3]int
	rest := text
	for i := range numbers {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		number, err := strconv.Atoi(rest[:digits])
		if err != nil {
			return numbers, fmt.Errorf("%q is not a version of MySQL", text)
		}
		numbers[i], rest = number, strings.TrimPrefix(rest[digits:], ".")
	}
	return numbers, nil
}
