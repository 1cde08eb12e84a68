package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

func TestCommandLines(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		arguments []string
		status    int
		says      string
	}{
		"help":                   {[]string{"help"}, 0, "server-version [flags]"},
		"nothing":                {nil, cli.ExitUsage, `no subcommand ""`},
		"no such subcommand":     {[]string{"run"}, cli.ExitUsage, `no subcommand "run"`},
		"help of a subcommand":   {[]string{"agent", "--help"}, 0, "--log-level"},
		"an argument too many":   {[]string{"init", "now"}, cli.ExitUsage, `init takes no argument "now"`},
		"no such log level":      {[]string{"agent", "--log-level=loud"}, cli.ExitUsage, "use one of error, info, debug, trace"},
		"neither way of a probe": {[]string{"server-version"}, cli.ExitUsage, "takes --install or --report"},
		"outside a member's Pod": {[]string{"init"}, cli.ExitFailure, "runs inside the Pods of a MySQLCluster only"},
		"both ways of a probe":   {[]string{"server-version", "--install=a", "--report=b"}, cli.ExitUsage, "takes --install or --report"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			status := program().Execute(t.Context(), cli.Process{Arguments: test.arguments, Environment: func(string) string { return "" }, Out: &out, Err: &out})
			if status != test.status || !strings.Contains(out.String(), test.says) {
				t.Errorf("exit status %d and %q, want %d and %q", status, out.String(), test.status, test.says)
			}
		})
	}
}

// TestNoClientOfKubernetesIsLinked: every member's Pod runs the agent, and each linked library costs memory there.
func TestNoClientOfKubernetesIsLinked(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"k8s.io/client-go", "k8s.io/api/", "k8s.io/apiextensions-apiserver", "github.com/aws/", "cloud.google.com/", "github.com/Azure/"} {
		if at := slices.IndexFunc(strings.Split(string(output), "\n"), func(name string) bool { return strings.HasPrefix(name, heavy) }); at >= 0 {
			t.Errorf("linked with %s", heavy)
		}
	}
}
