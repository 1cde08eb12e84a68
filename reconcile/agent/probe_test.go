package agent

import (
	"path/filepath"
	"strings"
	"testing"
)

// logBefore and logAfter are around the line that tells the version.
const (
	logBefore = "2026-11-21T15:45:46.740563Z 0 [System] [MY-015017] [Server] MySQL Server Initialization - start.\n"
	logAfter  = "2026-11-21T15:45:46.754106Z 1 [System] [MY-013576] [InnoDB] InnoDB initialization has started.\n"
)

func TestProbedVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ line, want string }{
		"9.7 of Debian": {"2026-11-21T15:45:46.744311Z 0 [System] [MY-013169] [Server] /usr/sbin/mysqld (mysqld 9.7.4-2) initializing of server in progress as process 12453", "9.7.4-2"},
		"8.4 of Oracle": {"2025-01-01T00:00:00.000000Z 0 [System] [MY-013169] [Server] /usr/sbin/mysqld (mysqld 8.4.6) initializing of server in progress as process 1", "8.4.6"},
		"nothing":       {"2025-01-01T00:00:00.000000Z 0 [ERROR] [MY-010119] [Server] Aborting", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			write(t, filepath.Join(folder, probeLog), logBefore+test.line+"\n"+logAfter)
			got, err := ProbedVersion(folder)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
		})
	}
	if _, err := ProbedVersion(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no log") {
		t.Errorf("an image that did nothing: %v", err)
	}
}

func TestCanStart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ image, data, says string }{
		"the same":                    {"9.7.4-2", "9.7.4", ""},
		"a later patch":               {"8.4.10", "8.4.9", ""},
		"an earlier patch":            {"8.4.9", "8.4.10", "at least 8.4.10"},
		"a later series":              {"9.7.4", "8.4.6", "image of 8.4 first"},
		"an earlier series":           {"8.4.6", "9.7.4", "image of 9.7 first"},
		"what is no version":          {"latest", "9.7.4", "no version"},
		"a backup that does not tell": {"9.7.4", "", "the backup's version"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := CanStart(test.image, test.data)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}
