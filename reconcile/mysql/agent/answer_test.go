package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatMysqldComplainsOf reads the output of mysqld 9.7.4.
func TestWhatMysqldComplainsOf(t *testing.T) {
	t.Parallel()
	const text = "[mysqld]\nplugin_load_add = none.so\nno-such-setting = 1\nmax_connections = many\ninnodb_flush_neighbors = x\nsql_mode = GARBAGE\nsort_buffer_size = 1M\n"
	for name, test := range map[string]struct {
		said string
		want []string
	}{
		"a name":         {"2026-11-25T08:51:59Z 0 [ERROR] [MY-000067] [Server] unknown variable 'no-such-setting=1'.\n[ERROR] [MY-010119] [Server] Aborting\n", []string{"no_such_setting"}},
		"an option":      {"0 [ERROR] [MY-000068] [Server] unknown option '--no-such-setting'.\n", []string{"no_such_setting"}},
		"a number":       {"0 [ERROR] [MY-000058] [Server] Unknown suffix 'm' used for variable 'max_connections' (value 'many').\n[ERROR] [MY-000077] [Server] mysqld: Error while setting value 'many' to 'max_connections'.\n", []string{"max_connections"}},
		"one of InnoDB":  {"[ERROR] [MY-000077] [Server] mysqld: Error while setting value 'x' to 'innodb-flush-neighbors'.\n[ERROR] unknown variable 'innodb-flush-neighbors=x'.\n", []string{"innodb_flush_neighbors"}},
		"a set":          {"[ERROR] [MY-000077] [Server] /usr/sbin/mysqld: Error while setting value 'GARBAGE' to 'sql_mode'.\n", []string{"sql_mode"}},
		"a plugin":       {"[ERROR] [MY-010736] [Server] Couldn't load plugin named 'none.so' with soname 'none.so'.\n[ERROR] Couldn't load plugin named 'x.so' with soname 'x.so'.\n", []string{"none.so"}},
		"a warning":      {"0 [Warning] [MY-000081] [Server] option 'max_connections': unsigned value 0 adjusted to 1. unknown variable 'sql_mode=x'\n", nil},
		"not asked for":  {"[ERROR] unknown variable 'S3cr3t=x'.\n", nil},
		"something else": {"[ERROR] cannot load libssl\n", nil},
		"nothing":        {"", nil},
	} {
		if diff := cmp.Diff(test.want, complaints([]byte(test.said), text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAnAnswerRepeatsNothingElse: the author of the image decides what is in the report.
func TestAnAnswerRepeatsNothingElse(t *testing.T) {
	t.Parallel()
	config := map[string]string{"no-such-setting": "1", "sql_mode": "x"}
	for report, want := range map[string]*Answer{
		"9.7.4 accepted":                              {Version: "9.7.4", Accepted: true},
		"9.7.4-2 refused sql_mode":                    {Version: "9.7.4-2", Refused: []string{"sql_mode"}},
		"9.7.4 refused no_such_setting sql_mode":      {Version: "9.7.4", Refused: []string{"no_such_setting", "sql_mode"}},
		"9.7.4 refused none.so":                       {Version: "9.7.4", Refused: []string{"none.so"}},
		"9.7.4 refused S3cr3t-of-another-team":        {Version: "9.7.4", Refused: []string{}},
		"9.7.4 refused":                               {Version: "9.7.4", Refused: []string{}},
		"9.7.4 accepted S3cr3t":                       nil,
		"9.7.4 perhaps":                               nil,
		"9.7.4":                                       nil,
		"S3cr3t accepted":                             nil,
		"9.7.4  accepted":                             nil,
		"9.7.4 accepted\n":                            nil,
		"9.7.4 refused " + strings.Repeat("a ", 2048): nil,
		"": nil,
	} {
		got, ok := ReadAnswer(report, config, []string{"none.so"})
		if ok != (want != nil) {
			t.Errorf("%.60q is accepted: %t", report, ok)
		} else if ok {
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", report, diff)
			}
		}
	}
}

func TestProbeAsksAboutSettings(t *testing.T) { //nolint:paralleltest // it sets PATH
	mysqldThat(t, `case "$*" in
--no-defaults*) echo "mysqld  Ver 9.7.4 for Linux on x86_64 (x)" ;;
*) grep -q none.so "${1#--defaults-file=}" && echo "[ERROR] Couldn't load plugin named 'none.so' with soname 'none.so'." >&2
   grep -q no_such "${1#--defaults-file=}" || exit 0; echo "[ERROR] [MY-000067] [Server] unknown variable 'no_such=1'." >&2; exit 1 ;;
esac`)
	folder := t.TempDir()
	for text, want := range map[string]string{"[mysqld]\nsql_mode = ANSI\n": "9.7.4 accepted", "[mysqld]\nno_such = 1\n": "9.7.4 refused no_such", "[mysqld]\nplugin_load_add = none.so\n": "9.7.4 refused none.so"} {
		report, file := filepath.Join(folder, "report"), filepath.Join(folder, ProbeSettings)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Probe(t.Context(), report, file); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(report); string(got) != want || err != nil {
			t.Errorf("the report is %q (%v), want %q", got, err, want)
		}
	}
}

// TestAMysqldThatIsKilledHasNotAnswered: mysqld may have had too little memory, which proves nothing about the settings.
func TestAMysqldThatIsKilledHasNotAnswered(t *testing.T) { //nolint:paralleltest // it sets PATH
	mysqldThat(t, `case "$*" in --no-defaults*) echo "mysqld  Ver 9.7.4 for Linux on x86_64 (x)" ;; *) kill -9 $$ ;; esac`)
	report, file := filepath.Join(t.TempDir(), "report"), filepath.Join(t.TempDir(), ProbeSettings)
	if err := os.WriteFile(file, []byte("[mysqld]\nsql_mode = ANSI\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Probe(t.Context(), report, file); err == nil {
		text, _ := os.ReadFile(report)
		t.Errorf("the report is %q", text)
	}
}

func TestALongListIsCut(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{strings.Repeat("a", 128)}, 64)
	if report := (Answer{Version: "9.7.4", Refused: many}).report(true); len(report) > longestAnswer {
		t.Errorf("a report of %d bytes", len(report))
	}
}
