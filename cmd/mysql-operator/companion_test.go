package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

// own begins the import paths of the kinds' packages.
const own = "github.com/mysql-operator/mysql-operator/reconcile/"

// TestTheOperatorDoesNotCarryPulsar: a linked client library would cost the operator memory at start.
func TestTheOperatorDoesNotCarryPulsar(t *testing.T) {
	t.Parallel()
	doesNotCarry(t, own+"kinds/pulsarconsumer", "cmd/mysql-operator-pulsar", "github.com/apache/pulsar-client-go/")
}

// TestTheOperatorDoesNotCarryStores: only the Pods of backups need the SDKs of stores, and the packages that compress and pack backups.
func TestTheOperatorDoesNotCarryStores(t *testing.T) {
	t.Parallel()
	doesNotCarry(t, own+"mysql/backup", "cmd/mysql-operator-backup",
		"github.com/aws/", "github.com/Azure/", "cloud.google.com/", "google.golang.org/api/", "google.golang.org/grpc/", "golang.org/x/oauth2/google/",
		"github.com/klauspost/compress/zstd/", "archive/tar/", own+"mysql/archive/", own+"mysql/clone/", own+"mysql/transfer/mover/")
}

// doesNotCarry checks that the operator serves a kind, and that it is not linked with packages that only another program needs. Each of
// heavy is a package, or the folder of several. Two packages below reconcile/mysql/archive need no SDK.
func doesNotCarry(t *testing.T, kind, program string, heavy ...string) {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(listed))
	if !slices.Contains(packages, kind) {
		t.Fatalf("the operator does not serve %s: %d packages", kind, len(packages))
	}
	for _, name := range packages {
		if name == own+"mysql/archive/destination" || name == own+"mysql/archive/encryption" {
			continue
		}
		for _, folder := range heavy {
			if strings.HasPrefix(name+"/", folder) {
				t.Errorf("the operator is linked with %s: leave that to %s", name, program)
			}
		}
	}
}

func TestACompanionIsMissing(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{
		"consume": "mysql-operator-pulsar", "produce": "mysql-operator-pulsar",
		"backup": "mysql-operator-backup", "restore": "mysql-operator-backup", "backup-delete": "mysql-operator-backup",
	} {
		status, _, said := called(t, nil, name)
		if status != cli.ExitFailure || !strings.Contains(said, program) || !strings.Contains(said, "make build") {
			t.Errorf("%s: status %d, %s", name, status, said)
		}
	}
}
