package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/schema/mysql/settings"
)

// TestClusterSettingsAreThoseOfTheTable compares what the definition refuses with the table of settings, one by one.
func TestClusterSettingsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	table, err := settings.Read()
	if err != nil {
		t.Fatal(err)
	}
	server := newAPIServer(t, "MySQLCluster")
	apply := func(name, value string) error {
		_, err := server.create(cluster("a", fmt.Sprintf("secret: s, config: {%s: %q}", name, value)))
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		variable := table[name]
		isFree := variable.Refused == settings.Free || variable.Refused == settings.Runtime
		if err := apply(name, sampleOf(variable)); isFree != (err == nil) {
			t.Errorf("%s is under the rule %q: %v", name, variable.Refused, err)
		}
		for _, value := range variable.Values {
			if value == settings.Pattern || isFree {
				continue
			}
			if err := apply(name, value); err != nil {
				t.Errorf("%s = %s should be allowed: %v", name, value, err)
			}
		}
		if err := apply("loose_"+strings.ReplaceAll(name, "_", "-"), sampleOf(variable)); isFree != (err == nil) {
			t.Errorf("%s in another spelling: %v", name, err)
		}
	}
}

// sampleOf returns a possible value of a setting. For a refused setting, it is not one of the allowed values.
func sampleOf(variable settings.Variable) string {
	switch {
	case slices.Contains(variable.Values, settings.Pattern):
		return "/etc/x"
	case variable.Refused != settings.Free && slices.Contains(variable.Values, "ON"):
		return "OFF"
	case variable.Refused == settings.Free && len(variable.Values) > 0:
		return variable.Values[0]
	case variable.Refused == settings.Free && variable.Type == settings.Bool:
		return "ON"
	case variable.Refused == settings.Free && variable.Least != "":
		return variable.Most
	case variable.Refused == settings.Layout:
		return "2"
	case variable.Type == settings.Int:
		return "7"
	}
	return "ON"
}
