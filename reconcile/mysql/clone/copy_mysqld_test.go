package clone

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
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
		for range 3 {
			copyDuringDDL(t, donor)
		}
	})
}

// counting counts what a Sink is told, and calls at once in a while.
type counting struct {
	Sink
	known, renamed, removed, created, writes int
	names                                    map[string]bool
	stage                                    Stage
	each                                     func(write int)
}

func (c *counting) Write(file File, offset int64, data []byte) error {
	c.writes++
	if !c.names[file.Name] {
		c.names[file.Name] = true
		if c.stage == StagePages || c.stage == StageRedo && !strings.HasPrefix(file.Name, "#innodb_redo/") {
			c.created++
		}
	}
	if c.each != nil {
		c.each(c.writes)
	}
	return c.Sink.Write(file, offset, data)
}

func (c *counting) Rename(from, to string) error {
	c.renamed++
	c.names[to] = true
	return c.Sink.Rename(from, to)
}

func (c *counting) Remove(name string) error {
	c.removed++
	return c.Sink.Remove(name)
}

// copyDuringDDL lets DDL happen within and at the end of every stage.
func copyDuringDDL(t *testing.T, donor *server) {
	t.Helper()
	donor.exec(t, "DROP DATABASE IF EXISTS ddl", "CREATE DATABASE ddl",
		"CREATE TABLE ddl.x (id INT PRIMARY KEY, v VARCHAR(50))", "CREATE TABLE ddl.y (id INT PRIMARY KEY, v VARCHAR(50))",
		"INSERT INTO ddl.x VALUES (1, 'left')", "INSERT INTO ddl.y VALUES (1, 'right'), (2, 'right')")
	writers := newWorkload(t, donor, 2)
	rebuilds, renames := newDDL(t, donor, rebuilding), newDDL(t, donor, renaming)
	rebuilds.during(t, 4)
	renames.during(t, 4)
	sink := &counting{names: map[string]bool{}}
	observer := Observer{Stage: func(stage Stage) error {
		switch stage {
		case StagePages:
			rebuilds.during(t, 4)
			renames.during(t, 4)
		case StageRedo:
			renames.during(t, 4)
		case StageFiles, StageDone:
		}
		sink.stage = stage
		return nil
	}}
	sink.each = func(write int) {
		// A file that is being sent is pinned: DDL to it waits for us, so we must not wait for DDL.
		if write == 3 || write == 40 || sink.stage == StagePages && write%1000 == 0 {
			time.Sleep(3 * time.Second)
		}
	}
	restored := donor.restore(t, observer, func(to Sink) Sink { sink.Sink = to; return sink })
	begun := writers.end(t)
	rounds := rebuilds.stop() + renames.stop()
	checkTables(t, restored)
	checkDDL(t, restored)
	t.Logf("%d of %d transactions are in the copy; %d rounds of DDL; %d renamed, %d removed, %d created, %d writes",
		checkWorkload(t, restored), begun, rounds, sink.renamed, sink.removed, sink.created, sink.writes)
	restored.stop(t)
	for _, schema := range donor.rows(t, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'ddl%'") {
		donor.exec(t, "DROP DATABASE "+schema)
	}
	for _, space := range donor.rows(t, "SELECT name FROM information_schema.innodb_tablespaces WHERE name LIKE 'gs%'") {
		donor.exec(t, "DROP TABLESPACE "+space)
	}
	donor.exec(t, "ALTER UNDO TABLESPACE undo_extra SET ACTIVE")
}
