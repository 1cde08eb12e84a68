package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/clone"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// called runs the program, and returns its exit status and what it printed.
func called(t *testing.T, arguments ...string) (status int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	none := func(string) string { return "" }
	status = program().Execute(t.Context(), cli.Process{Arguments: arguments, Environment: none, Out: &stdout, Err: &stderr})
	return status, stdout.String(), stderr.String()
}

// anArchive makes a backup of one file, and returns its folder.
func anArchive(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "shop", "db", "nightly-1")
	store, err := archive.Open(t.Context(), archive.Location{URL: "file://" + root})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	writer, err := archive.Begin(t.Context(), store, archive.WriteOptions{Identity: archive.Identity{Namespace: "shop", Cluster: "db", Instance: "nightly-1", UID: "0a1b"}})
	if err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("system."), 20000)
	if err := writer.Write(clone.File{Name: "ibdata1", Size: int64(len(content))}, 0, content); err != nil {
		t.Fatal(err)
	}
	manifest := archive.Manifest{
		Source: archive.Source{Member: "db-1", ServerVersion: "9.7.4"}, GTIDs: archive.GTIDs{AtLeast: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9"},
		Data: archive.Data{Bytes: int64(len(content)), Files: 1},
	}
	if _, _, err := writer.Finish(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestBackupsByHand(t *testing.T) {
	t.Parallel()
	root := anArchive(t)
	into := filepath.Join(t.TempDir(), "data")
	stories := []struct {
		story     string
		arguments []string
		status    int
		says      string
	}{
		{"help", []string{"help"}, 0, "backup-delete [flags]"},
		{"nothing", nil, cli.ExitUsage, `no subcommand ""`},
		{"what another program has", []string{"run"}, cli.ExitUsage, `no subcommand "run"`},
		{"how to restore", []string{"restore", "--help"}, 0, "mysqld must be of the backup's release series"},
		{"how people call it", []string{"restore", "--help"}, 0, "usage: mysql-operator restore --from URL --into DIR [flags]"},
		{"how to verify", []string{"backup", "verify", "--help"}, 0, "Exit status: 0 intact"},
		{"from nowhere", []string{"restore", "--into", into}, cli.ExitUsage, "needs --from"},
		{"to nowhere", []string{"restore", "--from", "file://" + root}, cli.ExitUsage, "needs --into"},
		{"to two places", []string{"restore", "--from", "file://" + root, "--into", into, "--volume", into}, cli.ExitUsage, "--into"},
		{"a backup of nothing", []string{"backup", "--url", "file://" + root}, cli.ExitUsage, "needs --namespace"},
		{"deleting nothing in particular", []string{"backup-delete", "--url", "file://" + root}, cli.ExitUsage, "needs --uid"},
		{"too much", []string{"restore", "--from", "file://" + root, "--into", into, "now"}, cli.ExitUsage, `"now"`},
		{"a setting without a value", []string{"restore", "--from", "file://" + root, "--into", into, "--server-setting", "innodb_page_size"}, cli.ExitUsage, "NAME=VALUE"},
		{"verify", []string{"backup", "verify", "--from", "file://" + root}, 0, "whole and intact"},
		{"verify, from its volume", []string{"backup", "verify", "--from", "file:///nightly-1", "--store-dir", filepath.Dir(root)}, 0, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9"},
		{"verify another", []string{"backup", "verify", "--from", "file://" + root, "--checksum", "sha256:0"}, protocol.ExitRefused, protocol.ReasonBackupForeign},
		{"verify what is not there", []string{"backup", "verify", "--from", "file://" + root + "-2"}, protocol.ExitRefused, protocol.ReasonBackupNotFound},
		{"restore", []string{"restore", "--from", "file://" + root, "--into", into}, 0, "restored backup nightly-1 of cluster shop/db"},
		{"restore over it", []string{"restore", "--from", "file://" + root, "--into", into}, protocol.ExitRefused, protocol.ReasonDataExists},
		{"delete another's", []string{"backup-delete", "--url", "file://" + root, "--uid", "another"}, protocol.ExitRefused, protocol.ReasonDestinationOccupied},
		{"delete what was never finished", []string{"backup-delete", "--url", "file://" + root, "--uid", "0a1b", "--unfinished-only"}, protocol.ExitRefused, "may be a good backup and is not deleted"},
		{"delete", []string{"backup-delete", "--url", "file://" + root, "--uid", "0a1b"}, 0, "the data is deleted"},
	}
	for _, test := range stories {
		status, out, err := called(t, test.arguments...)
		if status != test.status || !strings.Contains(out+err, test.says) {
			t.Errorf("%s: exit status %d and %q, want %d and a word of %q", test.story, status, out+err, test.status, test.says)
		}
	}
	if content, err := os.ReadFile(filepath.Join(into, "ibdata1")); err != nil || len(content) != 140000 {
		t.Errorf("%d bytes were restored (%v)", len(content), err)
	}
}

func TestProgramsOfPodsReportToTheirJob(t *testing.T) {
	t.Parallel()
	root := anArchive(t)
	report := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(report, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	told := func() protocol.Outcome {
		content, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		outcome, ok := protocol.ReadOutcome(string(content))
		if !ok {
			t.Fatalf("the report is %q", content)
		}
		return outcome
	}
	status, out, log := called(t, "restore", "--from=file://"+root, "--volume="+t.TempDir(), "--uid=another", "--report="+report, "--namespace=shop", "--cluster=db")
	if outcome := told(); status != protocol.ExitRefused || outcome.Reason != protocol.ReasonBackupForeign || !strings.Contains(outcome.Message, "0a1b") {
		t.Errorf("exit status %d, %+v", status, outcome)
	}
	if out != "" || !strings.HasPrefix(log, `{"level"`) {
		t.Errorf("a program without a person watching says %q and logs %q", out, log)
	}
	status, _, _ = called(t, "restore", "--from=file://"+root, "--volume="+t.TempDir(), "--uid=0a1b", "--report="+report, "--namespace=shop", "--cluster=db")
	if outcome := told(); status != 0 || outcome.Reason != protocol.ReasonCompleted || outcome.ServerVersion != "9.7.4" || outcome.Checksum == "" {
		t.Errorf("exit status %d, %+v", status, outcome)
	}
}
