package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProcesses(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for number, files := range map[string][2]string{
		"11": {"/usr/sbin/mysqld\x00--port=3306\x00", "PATH=/bin\x00HOSTNAME=db-0\x00"},
		"12": {"/opt/supervisor\x00mysqld\x00", "HOSTNAME=db-0\x00"}, // only its argument is mysqld
		"13": {"mysqld\x00", "HOSTNAME=db-01\x00"},
		"14": {"mysqld\x00", "OLD_HOSTNAME=db-0\x00"},
		"15": {"", "HOSTNAME=db-0\x00"}, // it has ended
		"16": {"mysqld\x00", "HOSTNAME=db-0\x00HOME=/\x00"},
	} {
		if err := os.Mkdir(filepath.Join(root, number), 0o700); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"cmdline", "environ"} {
			if err := os.WriteFile(filepath.Join(root, number, name), []byte(files[i]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	numbers, err := Root(root).Processes("db-0", "mysqld")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{11, 16}, numbers); diff != "" {
		t.Error(diff)
	}
}
