package main

import (
	"strings"
	"testing"
)

func TestObstacles(t *testing.T) {
	t.Parallel()
	on := func(nodes ...string) []pod {
		pods := make([]pod, 0, len(nodes))
		for i, node := range nodes {
			pods = append(pods, pod{name: "p-" + string(rune('0'+i)), node: node})
		}
		return pods
	}
	for name, story := range map[string]struct {
		fault              string
		members, operators []pod
		want               string
	}{
		"two operators, one beside the primary":             {"node", on("n1", "n2", "n3"), on("n1", "n2"), ""},
		"the one beside it is to fail, too":                 {"node-operator", on("n1", "n2", "n3"), on("n1", "n2"), ""},
		"none is beside the primary":                        {"node-operator", on("n1", "n2", "n3"), on("n2", "n3"), "no operator is on the node of p-0"},
		"the only operator would end with the node":         {"node", on("n1", "n2", "n3"), on("n1"), "no operator is on another node than p-0: start two"},
		"both operators would end with the node":            {"node-operator", on("n1", "n2", "n3"), on("n1", "n1"), "no operator is on another node than p-0"},
		"the only operator is elsewhere":                    {"node", on("n1", "n2", "n3"), on("n3"), ""},
		"another member would end with the node":            {"node", on("n1", "n2", "n1"), on("n1", "n2"), "p-2 is on the same node as p-0"},
		"two replicas on one node: not that of the primary": {"node", on("n1", "n2", "n2"), on("n1", "n2"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, err := parseFaults(story.fault)
			if err != nil {
				t.Fatal(err)
			}
			got := obstacleFor(faults[0], story.members[0], story.members, story.operators)
			if (got == "") != (story.want == "") || !strings.HasPrefix(got, story.want) {
				t.Errorf("got %q, want %q", got, story.want)
			}
		})
	}
}
