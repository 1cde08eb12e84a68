package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// readingLimit bounds reading the binary logs of a member: some hundred megabytes of text after an hour of writes.
const readingLimit = 5 * time.Minute

// printLogs prints all binary logs of a member, with the rows that each transaction changes as comments (manual, "mysqlbinlog Row Event
// Display").
const printLogs = "exec mysqlbinlog --base64-output=DECODE-ROWS --verbose /var/lib/mysql-operator/data/binlog.[0-9]*"

// transactions are the transactions of all members: what each GTID stands for, and the GTIDs that stand for more than one thing.
type transactions struct {
	rows   map[string]uint64
	reused map[string]bool
}

// readReused compares the binary logs of all members, and returns the GTIDs that name different rows in two places. It also returns how
// many GTIDs the logs have.
func (b *bench) readReused(ctx context.Context) (reused []string, compared int, err error) {
	all := transactions{rows: map[string]uint64{}, reused: map[string]bool{}}
	for ordinal := range members {
		if err := b.readLogs(ctx, b.member(ordinal), all); err != nil {
			return nil, 0, fmt.Errorf("read the binary logs of %s: %w", b.member(ordinal), err)
		}
	}
	return slices.Sorted(maps.Keys(all.reused)), len(all.rows), nil
}

// readLogs adds the transactions in a member's binary logs.
func (b *bench) readLogs(ctx context.Context, member string, all transactions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readingLimit, fmt.Errorf("not within %s", readingLimit))
	defer cancel()
	command := exec.CommandContext(ctx, b.kubectl.Program, "--kubeconfig", b.kubectl.Config,
		"exec", inNamespace, b.namespace, member, "--container=mysqld", "--", "sh", "-c", printLogs)
	var problem bytes.Buffer
	command.Stderr = &problem
	printed, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	read := all.read(printed)
	if err := command.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
	}
	return read
}

// read adds the transactions that mysqlbinlog has printed.
func (t transactions) read(printed io.Reader) error {
	lines := bufio.NewReader(printed)
	gtid, rows := "", fnv.New64a()
	for {
		line, err := lines.ReadString('\n')
		if next, isGTID := strings.CutPrefix(line, "SET @@SESSION.GTID_NEXT= '"); isGTID || err != nil {
			t.add(gtid, rows.Sum64())
			gtid, _, _ = strings.Cut(next, "'")
			rows.Reset()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "### ") {
			_, _ = rows.Write([]byte(line)) // never fails
		}
	}
}

// add adds a transaction. After the last one of a file, mysqlbinlog prints AUTOMATIC instead of a GTID.
func (t transactions) add(gtid string, rows uint64) {
	if gtid == "" || gtid == "AUTOMATIC" {
		return
	}
	if former, known := t.rows[gtid]; known && former != rows {
		t.reused[gtid] = true
	}
	t.rows[gtid] = rows
}
