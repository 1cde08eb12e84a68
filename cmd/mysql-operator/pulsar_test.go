package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

// TestTheOperatorDoesNotCarryPulsar: what the client library costs at start, the operator and every agent would pay.
func TestTheOperatorDoesNotCarryPulsar(t *testing.T) {
	t.Parallel()
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := string(listed)
	if !strings.Contains(packages, "/reconcile/kinds/pulsarconsumer\n") {
		t.Fatalf("the operator does not serve PulsarConsumer: %d bytes of packages", len(packages))
	}
	if strings.Contains(packages, "apache/pulsar-client-go") {
		t.Error("the operator imports the client library of Pulsar: leave that to cmd/mysql-operator-pulsar")
	}
}

func TestTheProgramForPulsarIsMissing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"consume", "produce"} {
		status, _, said := called(t, nil, name)
		if status != cli.ExitFailure || !strings.Contains(said, "mysql-operator-pulsar") || !strings.Contains(said, "make build") {
			t.Errorf("%s: status %d, %s", name, status, said)
		}
	}
}
