package main

import (
	"os"
	"strings"
	"testing"
)

// Every command must be in the documentation and in the usage.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/devcluster.md")
	if err != nil {
		t.Fatal(err)
	}
	help := usage(commands())
	for _, c := range commands() {
		if !strings.Contains(string(doc), "`"+c.name) {
			t.Errorf("docs/devcluster.md does not mention the command %s", c.name)
		}
		if !strings.Contains(help, "  "+c.name+" ") {
			t.Errorf("the usage does not mention the command %s", c.name)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"fly"}); err == nil || !strings.Contains(err.Error(), `"fly"`) || !strings.Contains(err.Error(), "usage:") {
		t.Errorf("error %v, want one that names the command and shows the usage", err)
	}
}

func TestNodeArguments(t *testing.T) {
	t.Parallel()
	got, err := nodeArguments("partition-node", []string{"--dir", "/d", "node-1", "node-2", "node-3"})
	if err != nil || got.dir != "/d" || got.node != "node-1" || strings.Join(got.rest, " ") != "node-2 node-3" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := nodeArguments("kill-node", nil); err == nil || !strings.Contains(err.Error(), "node-1") {
		t.Errorf("error %v, want one that shows how a node is named", err)
	}
}
