package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseFaults(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct{ list, want, err string }{
		"all by default, in their order": {namesOf(faultsByDefault()), namesOf(faultsByDefault()), ""},
		"disks, and a node":              {"kill,disk-full,node", "", "does not mount the disks again"},
		"two, in the order of the list":  {"node,kill", "node,kill", ""},
		"one that does not exist":        {"kill,burn", "", `"burn"; there are kill,stop,`},
		"one twice":                      {"kill,stop,kill", "", `"kill" twice`},
		"none":                           {"", "", `""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseFaults(story.list)
			if story.err != "" {
				if err == nil || !strings.Contains(err.Error(), story.err) {
					t.Errorf("got error %v, want one with %s", err, story.err)
				}
				return
			}
			if err != nil || namesOf(got) != story.want {
				t.Errorf("got %s, %v, want %s", namesOf(got), err, story.want)
			}
		})
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	faults, err := parseFaults("kill,disk-full,stop,disk-slow,disk-hangs")
	if err != nil {
		t.Fatal(err)
	}
	inTurn := schedule(faults, options{rounds: 2, seed: 7})
	if got, want := namesOf(inTurn), "disk-full,kill,stop,disk-slow,disk-hangs,kill,stop,disk-slow,disk-hangs"; got != want {
		t.Errorf("in turn: got %s, want %s", got, want)
	}
	random := namesOf(schedule(faults, options{rounds: 2, seed: 7, random: true}))
	if random != namesOf(schedule(faults, options{rounds: 2, seed: 7, random: true})) {
		t.Error("the same seed gives another order")
	}
	if random == namesOf(schedule(faults, options{rounds: 2, seed: 8, random: true})) || random == namesOf(inTurn) {
		t.Errorf("the order %s does not follow from the seed", random)
	}
	if !strings.HasPrefix(random, "disk-full,") {
		t.Errorf("the order %s does not begin with the fault that is inflicted once", random)
	}
	if got, want := sorted(random), sorted(namesOf(inTurn)); got != want {
		t.Errorf("the faults are not the same: got %s, want %s", got, want)
	}
}

func sorted(list string) string {
	names := strings.Split(list, ",")
	slices.Sort(names)
	return strings.Join(names, ",")
}
