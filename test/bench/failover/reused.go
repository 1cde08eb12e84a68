package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/bits"
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

// transactions are the transactions of all members: what each GTID stands for, the GTIDs that stand for more than one thing, and which
// members have each.
type transactions struct {
	rows   map[string]uint64
	reused map[string]bool
	// on has a bit for each member.
	on map[string]uint
}

func newTransactions() transactions {
	return transactions{rows: map[string]uint64{}, reused: map[string]bool{}, on: map[string]uint{}}
}

// compared counts the GTIDs of which two members or more have the rows.
func (t transactions) compared() int {
	count := 0
	for _, members := range t.on {
		if bits.OnesCount(members) > 1 {
			count++
		}
	}
	return count
}

// readReused compares the binary logs of all members, and returns the GTIDs that name different rows in two places. It also returns how
// many GTIDs it has compared.
func (b *bench) readReused(ctx context.Context) (reused []string, compared int, err error) {
	all := newTransactions()
	for ordinal := range members {
		if err := b.readLogs(ctx, ordinal, all); err != nil {
			return nil, 0, fmt.Errorf("read the binary logs of %s: %w", b.member(ordinal), err)
		}
	}
	return slices.Sorted(maps.Keys(all.reused)), all.compared(), nil
}

// readLogs adds the transactions in a member's binary logs.
func (b *bench) readLogs(ctx context.Context, ordinal int, all transactions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readingLimit, fmt.Errorf("not within %s", readingLimit))
	defer cancel()
	command := exec.CommandContext(ctx, b.kubectl.Program, "--kubeconfig", b.kubectl.Config,
		"exec", inNamespace, b.namespace, b.member(ordinal), "--container=mysqld", "--", "sh", "-c", printLogs)
	var problem bytes.Buffer
	command.Stderr = &problem
	printed, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	read := all.read(ordinal, printed)
	if err := command.Wait(); err != nil {
		return fmt.Errorf("%w: %s", cmp.Or(context.Cause(ctx), err), strings.TrimSpace(problem.String()))
	}
	return read
}

// read adds the transactions that mysqlbinlog has printed at a member.
func (t transactions) read(ordinal int, printed io.Reader) error {
	lines := bufio.NewReader(printed)
	gtid, rows := "", fnv.New64a()
	for {
		line, err := lines.ReadString('\n')
		if next, isGTID := strings.CutPrefix(line, "SET @@SESSION.GTID_NEXT= '"); isGTID || err != nil {
			t.add(ordinal, gtid, rows.Sum64())
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
func (t transactions) add(ordinal int, gtid string, rows uint64) {
	if gtid == "" || gtid == "AUTOMATIC" {
		return
	}
	if former, known := t.rows[gtid]; known && former != rows {
		t.reused[gtid] = true
	}
	t.rows[gtid] = rows
	t.on[gtid] |= 1 << ordinal
}
