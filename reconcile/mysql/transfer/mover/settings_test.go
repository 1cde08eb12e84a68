package mover

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// ofDefaults are the settings that a member without its own settings reports.
func ofDefaults(changes ...string) map[string]string {
	settings := map[string]string{
		"innodb_page_size": "16384", "lower_case_table_names": "0", "innodb_data_file_path": "ibdata1:12M:autoextend",
		"innodb_checksum_algorithm": "crc32", "innodb_undo_directory": "./", "version": "9.7.4",
	}
	for i := 0; i < len(changes); i += 2 {
		settings[changes[i]] = changes[i+1]
	}
	return settings
}

func TestWhichSettingsStartABackupsData(t *testing.T) {
	t.Parallel()
	two := "ibdata1:12M;ibdata2:20M:autoextend"
	tests := map[string]struct {
		made   map[string]string
		config map[string]string
		// says is in the refusal; empty for none.
		says []string
	}{
		"no settings":              {made: ofDefaults()},
		"the default, written out": {made: ofDefaults(), config: map[string]string{"innodb_page_size": "16K", "lower-case-table-names": "0"}},
		"a backup without settings, of an earlier build": {config: map[string]string{"innodb_page_size": "8192"}},
		"a page size that the cluster does not have":     {made: ofDefaults("innodb_page_size", "8192"), says: []string{"innodb_page_size is 8192 and not 16384", `spec.config: innodb_page_size: "8192"`}},
		"the same page size":                             {made: ofDefaults("innodb_page_size", "8192"), config: map[string]string{"innodb-page-size": "8k"}},
		"the same page size, loosely":                    {made: ofDefaults("innodb_page_size", "8192"), config: map[string]string{"loose-innodb-page-size": "8192"}},
		"another page size than the backup's default":    {made: ofDefaults(), config: map[string]string{"innodb_page_size": "64K"}, says: []string{"is 16384 and not 64K", `innodb_page_size: "16384"`}},
		"names were stored in lower case":                {made: ofDefaults("lower_case_table_names", "1"), says: []string{`lower_case_table_names: "1"`}},
		"names were stored unchanged, as with 2":         {made: ofDefaults(), config: map[string]string{"lower_case_table_names": "2"}},
		"names must now be in lower case":                {made: ofDefaults(), config: map[string]string{"lower_case_table_names": "1"}, says: []string{`lower_case_table_names: "0"`}},
		"another system tablespace":                      {made: ofDefaults("innodb_data_file_path", two), says: []string{`innodb_data_file_path: "` + two + `"`}},
		"the same one in another notation":               {made: ofDefaults("innodb_data_file_path", two), config: map[string]string{"innodb_data_file_path": `"ibdata1:12288K;ibdata2:20m:autoextend"`}},
		"two at once": {
			made: ofDefaults("innodb_page_size", "8192", "lower_case_table_names", "1"),
			says: []string{"innodb_page_size is 8192 and not 16384, lower_case_table_names is 1 and not 0", `spec.config: innodb_page_size: "8192", lower_case_table_names: "1"`},
		},
		"settings that do not affect data files": {made: ofDefaults("innodb_checksum_algorithm", "strict_crc32"), config: map[string]string{"innodb_redo_log_capacity": "1G", "max_connections": "9"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fitSettings(test.made, protocol.DataSettings(test.config))
			if (err != nil) != (len(test.says) > 0) {
				t.Fatalf("%v", err)
			}
			for _, words := range test.says {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q does not say %q", err, words)
				}
			}
		})
	}
}

// A person who restores by hand starts mysqld by hand, and needs the settings.
func TestRestoreByHandSaysWhatMysqldNeeds(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.settings = ofDefaults("lower_case_table_names", "1")
	s.mustBackup(t)
	env := s.env
	env.Into = t.TempDir() + "/data"
	outcome, err := restoreTo(t.Context(), env)
	if want := "; start mysqld with lower_case_table_names=1"; err != nil || !strings.HasSuffix(outcome.Message, want) {
		t.Errorf("the message is %q (%v), want …%s", outcome.Message, err, want)
	}
}

func TestSettingsOfABackupAreInItsManifest(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.settings = ofDefaults()
	s.mustBackup(t)
	manifest, err := s.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ofDefaults(), manifest.Settings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
