package replication

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAccountsAreNamedInShort(t *testing.T) {
	t.Parallel()
	app := Account{User: "app", Host: "%", Plugin: "mysql_native_password"}
	strange := Account{User: "x\n\"", Host: strings.Repeat("h", 255), Plugin: "p"}
	for want, accounts := range map[string]Accounts{
		"0 accounts":                          {},
		"7 accounts":                          {More: 7},
		`"app"@"%" ("mysql_native_password")`: {Named: []Account{app}},
		`"app"@"%" ("mysql_native_password"), "x\n\""@"` + strange.Host + `" ("p") and 3 more`: {Named: []Account{app, strange}, More: 3},
		`"x\n\""@"` + strange.Host + `" ("p"), "app"@"%" ("mysql_native_password") and 2 more`: {Named: []Account{strange, strange, app}, More: 1},
	} {
		if got := accounts.String(); got != want {
			t.Errorf("%+v are %s, want %s", accounts, got, want)
		}
	}
}

// TestWhoCannotLogInAlreadyLosesNothing: an upgrade is responsible only for the other accounts.
func TestWhoCannotLogInAlreadyLosesNothing(t *testing.T) {
	t.Parallel()
	one, two := Account{"one", "%", "mysql_native_password"}, Account{"two", "%", "sha256_password"}
	for name, test := range map[string]struct{ after, before, want Accounts }{
		"none could log in before":        {Accounts{Named: []Account{one, two}}, Accounts{Named: []Account{two, one}}, Accounts{}},
		"one could log in before":         {Accounts{Named: []Account{one, two}}, Accounts{Named: []Account{two}}, Accounts{Named: []Account{one}}},
		"the same user with another host": {Accounts{Named: []Account{one}}, Accounts{Named: []Account{{"one", "localhost", one.Plugin}}}, Accounts{Named: []Account{one}}},
		"as many as before":               {Accounts{Named: []Account{one}, More: 3}, Accounts{Named: []Account{one}, More: 3}, Accounts{}},
		"more are counted":                {Accounts{Named: []Account{one}, More: 4}, Accounts{Named: []Account{one}, More: 3}, Accounts{More: 4}},
		"an account that is only counted may have been able to log in": {Accounts{Named: []Account{one, two}, More: 3}, Accounts{Named: []Account{one}, More: 3}, Accounts{Named: []Account{two}, More: 3}},
		"none": {Accounts{}, Accounts{Named: []Account{one}}, Accounts{}},
	} {
		got := test.after.Without(test.before)
		if diff := cmp.Diff(test.want, got); diff != "" || got.Empty() != test.want.Empty() {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"9.7.4": "9.7", "8.0.43-34": "8.0", "8.4.6-log": "8.4", "26.10.1": "26.10",
		"": "", "9": "", "9.7": "", "nine.7.4": "", "9..4": "", "12345.0.1": "", "-9.7.4": "", "9.+7.4": "",
	} {
		if got := Series(version); got != want {
			t.Errorf("the series of %q is %q, want %q", version, got, want)
		}
	}
}

func TestOlderSeries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version, than string
		want          bool
	}{
		{"8.4.6", "9.7.4", true}, {"9.6.0", "9.7.4-2", true}, {"9.7.3", "9.7.4", false}, {"9.7.4", "8.4.6", false}, {"26.7.0", "9.7.4", false}, {"9.7.4", "", false}, {"x", "9.7.4", false}, {"9.7.4", "10.0.0", true},
	} {
		if got := IsOlderSeries(test.version, test.than); got != test.want {
			t.Errorf("%q is older than %q: %t", test.version, test.than, got)
		}
	}
}
