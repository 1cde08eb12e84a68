package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestNoKubernetesIsLinked: the Pods of backups send no requests to the API server, and Kubernetes' types would double the program.
func TestNoKubernetesIsLinked(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"k8s.io/client-go", "k8s.io/api/"} {
		if slices.ContainsFunc(strings.Split(string(output), "\n"), func(name string) bool { return strings.HasPrefix(name, heavy) }) {
			t.Errorf("linked with %s", heavy)
		}
	}
}
