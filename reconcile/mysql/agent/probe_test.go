package agent

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsThatImagesTell(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ told, want string }{
		"9.7 of Debian":     {"/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))\n", "9.7.4-2"},
		"8.4 of Oracle":     {"/usr/sbin/mysqld  Ver 8.4.6 for Linux on x86_64 (MySQL Community Server - GPL)\n", "8.4.6"},
		"8.0 of Percona":    {"/usr/sbin/mysqld  Ver 8.0.43-34 for Linux on aarch64 (Percona Server (GPL), Release 34, Revision 1)\n", "8.0.43-34"},
		"one built by hand": {"mysqld  Ver 9.7.4-debug.1+git~2 for Linux on x86_64 (Source distribution)\n", "9.7.4-debug.1+git~2"},
		"another program":   {"usage: mysqld FILE\n", ""},
		"nothing":           {"", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := versionIn([]byte(test.told))
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
			if read, ok := ReadVersion(got); ok != (test.want != "") || read != test.want {
				t.Errorf("read %q back", read)
			}
		})
	}
}

// TestAReportIsAVersionOrNothing: the author of the image decides what is in the report, and may know files that others must not read.
func TestAReportIsAVersionOrNothing(t *testing.T) {
	t.Parallel()
	for _, report := range []string{
		"", "9.7", "9.7.4 ", "9.7.4\n", "\n9.7.4", "9.7.4\x00", "S3cr3t of another team", "9.7.4 S3cr3t", "AGE-SECRET-KEY-1QQ", "9.7.4-" + strings.Repeat("a", 65),
		"99999.7.4", strings.Repeat("9", 1<<20), `{"reason":"Completed"}`, "9.7.4-<b>", "9.7.4-é",
	} {
		if version, ok := ReadVersion(report); ok || version != "" {
			t.Errorf("%.40q is accepted as version %.40q", report, version)
		}
	}
}

// mysqldThat puts a program named mysqld first in PATH.
func mysqldThat(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mysqld"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

func TestProbeAsksMysqld(t *testing.T) { //nolint:paralleltest // it sets PATH
	mysqldThat(t, `echo "mysqld  Ver 9.7.4 for Linux on x86_64 ($*)"`)
	report := filepath.Join(t.TempDir(), "report")
	if err := Probe(t.Context(), report, ""); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(report); string(got) != "9.7.4" || err != nil {
		t.Errorf("the report is %q (%v)", got, err)
	}
}

func TestProbeSaysWhyMysqldSaysNothing(t *testing.T) { //nolint:paralleltest // it sets PATH
	mysqldThat(t, "echo 'cannot load libssl' >&2; exit 127")
	report := filepath.Join(t.TempDir(), "report")
	err := Probe(t.Context(), report, "")
	if err == nil || !strings.Contains(err.Error(), "cannot load libssl") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(report); err == nil {
		t.Error("there is a report")
	}
}

func TestProbeReadsOnlyTheBeginning(t *testing.T) { //nolint:paralleltest // it sets PATH
	mysqldThat(t, `echo "mysqld  Ver 9.7.4 for Linux"; head -c 10000000 /dev/zero; sleep 1000 &`)
	report := filepath.Join(t.TempDir(), "report")
	err := Probe(t.Context(), report, "")
	if !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("a program that holds the output open: %v", err)
	}
}

func TestInstalledProbeRuns(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for range 2 { // a container may be started again
		if err := InstallProbe(folder, ""); err != nil {
			t.Fatal(err)
		}
	}
	program := ProbeCommand(folder, "report", "")[0]
	if output, err := exec.CommandContext(t.Context(), program, "-test.list=^TestInstalledProbeRuns$").CombinedOutput(); err != nil || !strings.Contains(string(output), "TestInstalledProbeRuns") {
		t.Errorf("%s: %v: %s", program, err, output)
	}
}

func TestCanStart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ image, data, says string }{
		"the same":                    {"9.7.4-2", "9.7.4", ""},
		"a later patch":               {"8.4.10", "8.4.9", ""},
		"an earlier patch":            {"8.4.9", "8.4.10", "at least 8.4.10"},
		"a later series":              {"9.7.4", "8.4.6", "image of 8.4 first"},
		"an earlier series":           {"8.4.6", "9.7.4", "image of 9.7 first"},
		"a name instead of a version": {"latest", "9.7.4", "not a version"},
		"a backup without a version":  {"9.7.4", "", "the backup's version"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := CanStart(test.image, test.data)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}
