package settings

import (
	"regexp"
	"slices"
	"testing"
)

func TestTheTableIsWhole(t *testing.T) {
	t.Parallel()
	table := read(t)
	if len(table) < 750 {
		t.Errorf("%d settings", len(table))
	}
	types := []Type{Bool, Int, Float, Enum, Set, Text}
	rules := []Rule{Free, Identity, Files, Replication, TLS, Durability, Operator, Layout, Runtime}
	for name, variable := range table {
		switch {
		case !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(name), Plain(name) != name:
			t.Errorf("%s is not a canonical name", name)
		case !slices.Contains(types, variable.Type), !slices.Contains(rules, variable.Refused):
			t.Errorf("%s: %+v", name, variable)
		case len(variable.releases) == 0 || slices.ContainsFunc(variable.releases, func(series string) bool { return !slices.Contains(described(), series) }):
			t.Errorf("%s is of the releases %v", name, variable.releases)
		case variable.Least != "" && rational(variable.Least).Cmp(rational(variable.Most)) >= 0:
			t.Errorf("%s is from %s to %s", name, variable.Least, variable.Most)
		}
	}
}

func TestTheTableIsInOrder(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`(?m)^[^#\t\n]+`).FindAllString(variables, -1)
	if !slices.IsSorted(names) {
		t.Error("the lines are not sorted by name")
	}
	if len(names) != len(read(t)) {
		t.Error("a name is listed twice")
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for spelled, want := range map[string]string{
		"max-connections": "max_connections", "loose_max_connections": "max_connections", "loose-loose_max-connections": "max_connections", "skip_x": "skip_x",
	} {
		if got := Plain(spelled); got != want {
			t.Errorf("%s is %s, want %s", spelled, got, want)
		}
	}
}
