package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsThatImagesTell(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ told, want string }{
		"9.7 of Debian":   {"/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))\n", "9.7.4-2"},
		"8.4 of Oracle":   {"/usr/sbin/mysqld  Ver 8.4.6 for Linux on x86_64 (MySQL Community Server - GPL)\n", "8.4.6"},
		"8.0 of Percona":  {"/usr/sbin/mysqld  Ver 8.0.43-34 for Linux on aarch64 (Percona Server (GPL), Release 34, Revision 1)\n", "8.0.43-34"},
		"another program": {"usage: mysqld FILE\n", ""},
		"nothing":         {"", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			write(t, filepath.Join(folder, probeVersion), test.told)
			got, err := ProbedVersion(folder)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
		})
	}
	if _, err := ProbedVersion(t.TempDir()); err == nil || !strings.Contains(err.Error(), "was not asked") {
		t.Errorf("an image that did nothing: %v", err)
	}
}

// mysqldThat is a program by that name, the first one to be found.
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
	folder := t.TempDir()
	if err := Probe(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	if got, err := ProbedVersion(folder); got != "9.7.4" || err != nil {
		t.Errorf("got %q (%v)", got, err)
	}
}

func TestProbeSaysWhyMysqldSaysNothing(t *testing.T) { //nolint:paralleltest // it sets PATH
	mysqldThat(t, "echo 'cannot load libssl' >&2; exit 127")
	err := Probe(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "cannot load libssl") {
		t.Errorf("got %v", err)
	}
}

func TestInstalledProbeRuns(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for range 2 { // a container may be started again
		if err := InstallProbe(folder); err != nil {
			t.Fatal(err)
		}
	}
	program := ProbeCommand(folder)[0]
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
		"what is no version":          {"latest", "9.7.4", "no version"},
		"a backup that does not tell": {"9.7.4", "", "the backup's version"},
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
