package clone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// sizeVariable is how many MiB of rows the tests with MySQL create; 60 by default.
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
		for range sample.Count(3) {
			copyDuringDDL(t, donor)
		}
	})
}

// counting counts the calls of a Sink, and calls each before every Write.
type counting struct {
	Sink
	renamed, removed, created, writes int
	names                             map[string]bool
	stage                             Stage
	each                              func(write int)
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

// copyDuringDDL runs DDL within and at the end of every stage.
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
		// A file that is being sent is pinned: DDL on it waits for the copy, so the copy must not wait for DDL.
		if write == 3 || write == 40 || sink.stage == StagePages && write%1000 == 0 {
			pause(t, 3*time.Second)
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

// stallVariable is how long the slow Sink stalls; 5s by default.
const stallVariable = "CLONE_TEST_STALL"

// pause takes time, like a slow upload.
func pause(t testing.TB, duration time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(duration):
	}
}

func stall(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv(stallVariable)
	if text == "" {
		return 5 * time.Second
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", stallVariable, err)
	}
	return duration
}

// TestSlowSink has a donor whose default would end the copy when the recipient accepts no data for a second. Copy sets a longer time.
func TestSlowSink(t *testing.T) {
	t.Parallel()
	donor := newServer(t, "--net-write-timeout=1", "--wait-timeout=2", "--net-read-timeout=1")
	fill(t, donor, size(t))
	writers := newWorkload(t, donor, 2)
	sink := &counting{names: map[string]bool{}}
	stalled := map[Stage]int{}
	sink.each = func(int) {
		stalled[sink.stage]++
		if stalled[sink.stage] == 10 {
			pause(t, stall(t))
		}
	}
	observer := Observer{Stage: func(stage Stage) error {
		if stage == StagePages || stage == StageRedo {
			pause(t, stall(t))
		}
		sink.stage = stage
		return nil
	}}
	restored := donor.restore(t, observer, func(to Sink) Sink { sink.Sink = to; return sink })
	begun := writers.end(t)
	checkTables(t, restored)
	t.Logf("%d of %d transactions are in the copy; writes by stage: %v", checkWorkload(t, restored), begun, stalled)
	for _, stage := range []Stage{StageFiles, StagePages, StageRedo} {
		if stalled[stage] < 10 {
			t.Errorf("%d writes in %v: nothing stalled there", stalled[stage], stage)
		}
	}
}

// TestDonorIsFree ends copies in every stage, by cancelling and by errors. The donor must serve the next copy at once.
func TestDonorIsFree(t *testing.T) {
	t.Parallel()
	donor := newServer(t)
	fill(t, donor, size(t))
	writers := newWorkload(t, donor, 2)
	refused, sampled, number := errors.New("no room"), sample.New(t), 0
	for _, stage := range []Stage{StageFiles, StagePages, StageRedo} { //nolint:paralleltest // they share a donor
		for _, at := range []string{"the beginning", "a write"} {
			for _, how := range []string{"cancelled", "refused"} {
				number++
				if !sampled.Takes(number) {
					continue
				}
				t.Run(fmt.Sprintf("%s at %s of %v", how, at, stage), func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var reached time.Time
					end := func() error {
						reached = time.Now()
						if how == "refused" {
							return refused
						}
						cancel()
						return nil
					}
					attempt := func() error {
						sink := &ending{end: end}
						_, err := Copy(ctx, donor.donor(), sink, Observer{Stage: func(now Stage) error {
							if now == stage && at == "the beginning" {
								return end()
							}
							sink.active = now == stage
							return nil
						}})
						return err
					}
					err := attempt()
					// Pages are copied again only if a client changed them meanwhile: a quick copy may have none.
					for tries := 1; err == nil && reached.IsZero() && tries < 20; tries++ {
						err = attempt()
					}
					if took := time.Since(reached); took > 2*time.Second {
						t.Errorf("ending took %v", took)
					}
					if !errors.Is(err, refused) && !errors.Is(err, context.Canceled) {
						t.Errorf("error is %v", err)
					}
					begun := time.Now()
					if _, err := Copy(t.Context(), donor.donor(), &ending{}, Observer{}); err != nil {
						t.Errorf("the next copy: %v\n%s", err, donor.messages(t))
					}
					t.Logf("the next copy took %v", time.Since(begun))
				})
			}
		}
	}
	writers.end(t)
	if complaints := donor.complaints(t); len(complaints) != 0 {
		t.Errorf("the donor logged errors:\n%s", strings.Join(complaints, ""))
	}
}

// ending discards everything, and ends the copy at its second write while it is active.
type ending struct {
	writes int
	active bool
	end    func() error
}

func (e *ending) Write(File, int64, []byte) error {
	if !e.active {
		return nil
	}
	e.writes++
	if e.writes == 2 {
		return e.end()
	}
	return nil
}

func (e *ending) Rename(string, string) error { return nil }
func (e *ending) Remove(string) error         { return nil }
