package clone

import (
	"os"
	"strconv"
	"testing"
)

// sizeVariable is how many MiB of rows the tests against MySQL make; 60 by default.
const sizeVariable = "CLONE_TEST_MIB"

func size(t testing.TB) int {
	t.Helper()
	text := os.Getenv(sizeVariable)
	if text == "" {
		return 60
	}
	mebibytes, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", sizeVariable, err)
	}
	return mebibytes
}

func TestCopyOfMySQL(t *testing.T) {
	t.Parallel()
	donor := newServer(t)
	fill(t, donor, size(t))
	want := checksums(t, donor)

	t.Run("with writers stopped the copy is equal", func(t *testing.T) { //nolint:paralleltest // they share a donor
		restored := donor.restore(t, Observer{})
		checkTables(t, restored)
		if got := checksums(t, restored); got != want {
			t.Errorf("checksums differ:\n%s\nwant:\n%s", got, want)
		}
		if got, want := restored.value(t, "SELECT @@GLOBAL.gtid_executed"), donor.value(t, "SELECT @@GLOBAL.gtid_executed"); got != want {
			t.Errorf("gtid_executed is %s, want %s", got, want)
		}
	})

	t.Run("with writers the copy is of one moment", func(t *testing.T) { //nolint:paralleltest // they share a donor
		writers := newWorkload(t, donor, 4)
		restored := donor.restore(t, Observer{})
		begun := writers.end(t)
		checkTables(t, restored)
		t.Logf("%d of %d transactions are in the copy", checkWorkload(t, restored), begun)
	})

	t.Run("with DDL the copy is of one moment", func(t *testing.T) { //nolint:paralleltest // they share a donor
		for range 5 {
			donor.exec(t, "DROP DATABASE ddl", "CREATE DATABASE ddl")
			writers := newWorkload(t, donor, 2)
			stop := ddlLoop(t, donor)
			restored := donor.restore(t, Observer{})
			t.Logf("%d rounds of DDL", stop())
			begun := writers.end(t)
			checkTables(t, restored)
			checkDDL(t, restored)
			t.Logf("%d of %d transactions are in the copy", checkWorkload(t, restored), begun)
			restored.stop(t)
			for _, schema := range donor.rows(t, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'ddl\\_%'") {
				donor.exec(t, "DROP DATABASE "+schema)
			}
			donor.exec(t, "DROP DATABASE ddl", "CREATE DATABASE ddl")
			for _, space := range donor.rows(t, "SELECT name FROM information_schema.innodb_tablespaces WHERE name LIKE 'gs%'") {
				donor.exec(t, "DROP TABLESPACE "+space)
			}
		}
	})
}
