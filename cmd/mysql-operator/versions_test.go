package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoProgramConverts: no kind has two versions, so no program of a release is linked with crds/conversion (docs/adr/0009).
func TestNoProgramConverts(t *testing.T) {
	t.Parallel()
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := string(listed)
	if !strings.Contains(packages, "/crds/migration\n") || !strings.Contains(packages, "/cmd/mysql-operator-pulsar\n") {
		t.Fatalf("these are not the programs: %d bytes of packages", len(packages))
	}
	if strings.Contains(packages, "/crds/conversion\n") {
		t.Error("a program imports crds/conversion: leave that to versions_two.go")
	}
}
