package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

func who() Identity {
	return Identity{Pod: "db-1", Host: "db-1.db-pods.shop.svc", Ordinal: 1, Settings: "[mysqld]\nshared = 1\n"}
}

// withData puts a data directory on the volume.
func withData(t *testing.T, layout Layout) {
	t.Helper()
	if err := os.Mkdir(layout.DataDir(), 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(layout.DataDir(), "ibdata1"), "rows")
}

func TestPrepareDecidesWhetherDataIsMade(t *testing.T) {
	t.Parallel()
	held := replication.Record{Epoch: 4, Primary: "db-0", InSync: []string{"db-0", "db-1"}, RequiredAcks: 1}
	tests := map[string]struct {
		data bool
		kept *state
		// initialize reports whether mysqld must create a data directory, keeps whether the former data must still be there.
		initialize, keeps bool
		want              replication.Origin
	}{
		"an empty volume is initialised":                        {initialize: true, want: replication.OriginInitializing},
		"an interrupted initialization is started again":        {data: true, kept: &state{Data: replication.OriginInitializing}, initialize: true, want: replication.OriginInitializing},
		"also one that was interrupted before it made anything": {kept: &state{Data: replication.OriginInitializing}, initialize: true, want: replication.OriginInitializing},
		"a member's data is kept":                               {data: true, kept: &state{Data: replication.OriginMember, Held: held}, keeps: true, want: replication.OriginMember},
		"new data that no client used is kept":                  {data: true, kept: &state{Data: replication.OriginFresh}, keeps: true, want: replication.OriginFresh},
		"new data that is gone is created again":                {kept: &state{Data: replication.OriginFresh}, initialize: true, want: replication.OriginInitializing},
		"data without a member.json is kept as a member's":      {data: true, keeps: true, want: replication.OriginMember},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			if test.data {
				withData(t, layout)
			}
			if test.kept != nil {
				if err := saveState(layout.stateFile(), *test.kept); err != nil {
					t.Fatal(err)
				}
			}
			if err := Prepare(layout, who()); err != nil {
				t.Fatal(err)
			}
			kept := stateOf(t, layout)
			if kept.Data != test.want || test.kept != nil && !kept.Held.Equal(test.kept.Held) {
				t.Errorf("the state is %+v, want the data %s and the former record", kept, test.want)
			}
			if got := strings.Contains(read(t, layout.initConfig()), "initialize_insecure"); got != test.initialize {
				t.Errorf("mysqld initialises: %t, want %t", got, test.initialize)
			}
			if got := strings.Contains(read(t, layout.initConfig()), "validate_config"); got == test.initialize {
				t.Errorf("mysqld only checks its settings: %t, want %t", got, !test.initialize)
			}
			_, err := os.Stat(filepath.Join(layout.DataDir(), "ibdata1"))
			if there := err == nil; there != test.keeps {
				t.Errorf("the former data is there: %t, want %t", there, test.keeps)
			}
			if got := strings.Contains(read(t, layout.bootstrapFile()), "'root'@'%'"); got != test.initialize {
				t.Errorf("root is made: %t, want %t", got, test.initialize)
			}
		})
	}
}

func TestPrepareRefusesAMemberWithoutItsData(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	if err := saveState(layout.stateFile(), memberState()); err != nil {
		t.Fatal(err)
	}
	err := Prepare(layout, who())
	if err == nil || !strings.Contains(err.Error(), "member.json") || !strings.Contains(err.Error(), "restore the volume") {
		t.Fatalf("got %v, want an error that says what to do", err)
	}
	if _, err := os.Stat(layout.initConfig()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("mysqld could still be started")
	}
}

func TestPrepareRefusesADamagedState(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	withData(t, layout)
	write(t, layout.stateFile(), `{"data": "Initia`)
	if err := Prepare(layout, who()); err == nil || !strings.Contains(err.Error(), layout.stateFile()) {
		t.Fatalf("got %v, want an error that names the file", err)
	}
	if _, err := os.Stat(filepath.Join(layout.DataDir(), "ibdata1")); err != nil {
		t.Errorf("the data was changed although the state could not be read: %v", err)
	}
}

func TestPrepareWritesSettingsInOrder(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	if err := Prepare(layout, who()); err != nil {
		t.Fatal(err)
	}
	settings := read(t, layout.serverConfig())
	order := []string{"shared = 1", "report_host = db-1.db-pods.shop.svc", "datadir = " + layout.DataDir(), "ssl_key = " + layout.keyFile(), "init_file = " + layout.bootstrapFile()}
	at := -1
	for _, setting := range order {
		next := strings.Index(settings, setting+"\n")
		if next <= at {
			t.Fatalf("%q is missing, or before the setting that it must override:\n%s", setting, settings)
		}
		at = next
	}
	if strings.Contains(settings, "initialize_insecure") || strings.Contains(settings, "validate_config") {
		t.Errorf("the server would not serve:\n%s", settings)
	}
	if strings.Contains(read(t, layout.initConfig()), "init_file") {
		t.Error("accounts would be created in a server that only initializes")
	}
	if info, err := os.Stat(layout.passwordsFile()); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file of current passwords: %v %v, want a file that only the member can read", info, err)
	}
}

func TestPrepareNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil func(Layout) error
		says  string
	}{
		"no root password":       {func(l Layout) error { return os.Remove(l.rootPassword()) }, "root password"},
		"an empty root password": {func(l Layout) error { return os.WriteFile(l.rootPassword(), []byte("\n"), 0o600) }, "empty"},
		"no account":             {func(l Layout) error { return os.Remove(l.account(mysqld.CloneUser)) }, mysqld.CloneUser},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			if err := test.spoil(layout); err != nil {
				t.Fatal(err)
			}
			if err := Prepare(layout, who()); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want an error about %q", err, test.says)
			}
		})
	}
}

func TestPrepareRefusesToGuessSettings(t *testing.T) {
	t.Parallel()
	layout, without := newLayout(t), who()
	without.Settings = ""
	if err := Prepare(layout, without); err == nil || !strings.Contains(err.Error(), "settings") {
		t.Errorf("got %v, want an error about the settings", err)
	}
	if _, err := os.Stat(layout.stateFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the volume was still changed")
	}
}

func TestRootPasswordIsTheSecretsValue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ value, want string }{
		"as it is":                   {"secret", "secret"},
		"a line break of an editor":  {"secret\n", "secret"},
		"one of another system":      {"secret\r\n", "secret"},
		"a second one is the user's": {"secret\n\n", "secret\n"},
		"spaces are the user's":      {"  secret  ", "  secret  "},
		"nothing but a line break":   {"\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := RootPassword([]byte(test.value)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
