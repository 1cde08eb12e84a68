package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
)

const (
	// settle is how long a cluster may still tell of its last changes before its rest is watched.
	settle = 30 * time.Second
	// maxAuditLine bounds a line of the audit log; without bodies they are a few KiB.
	maxAuditLine = 1 << 20
)

// measureSteadyWrites leaves the cluster alone and counts what the operator writes meanwhile.
func (b *bench) measureSteadyWrites(ctx context.Context, out io.Writer) error {
	log := auditLogOf(b.options, b.kubectl.Config)
	if _, err := os.Stat(log); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "\nwrites at rest are not counted: there is no audit log %s; name it with -audit-log\n", log)
		return nil
	}
	fmt.Fprintf(out, "\nresting for %s, of which the last %s count\n", settle+b.options.idle, b.options.idle)
	if err := rest(ctx, settle); err != nil {
		return err
	}
	from := time.Now()
	if err := rest(ctx, b.options.idle); err != nil {
		return err
	}
	writes, err := readWrites(log, b.operator, from, from.Add(b.options.idle))
	if err != nil {
		return err
	}
	seen := tally(writes)
	if seen.lease == 0 {
		return fmt.Errorf("count writes in %s: the operator (%s) has not even renewed its Lease in %s: it does not run, or the log is another cluster's", log, b.operator, b.options.idle)
	}
	fmt.Fprintf(out, "\nwrites by %s in %s at rest, its Lease (%d) apart\n", b.operator, b.options.idle, seen.lease)
	figure.Table(out, seen.rows())
	fmt.Fprintln(out)
	figure.Print(out, "steady_writes", float64(seen.total), "count")
	if others := seen.total - seen.in(b.namespace); others > 0 {
		fmt.Fprintf(out, "of these %d outside of %s, the benchmark's namespace: the operator had other work in this Kubernetes cluster\n", others, b.namespace)
	}
	return nil
}

func rest(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}

// write is one write request, as the audit log has it (Kubernetes API reference, audit.k8s.io/v1 Event).
type write struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Stage    string    `json:"stage"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// readWrites reads a user's writes in a span of time from the log and the files it was rotated to.
func readWrites(log, user string, from, to time.Time) ([]write, error) {
	extension := filepath.Ext(log)
	files, err := filepath.Glob(strings.TrimSuffix(log, extension) + "*" + extension)
	if err != nil {
		return nil, fmt.Errorf("find the audit log %s: %w", log, err)
	}
	var writes []write
	for _, file := range files {
		found, err := readFile(file, user, from, to)
		if err != nil {
			return nil, fmt.Errorf("read the audit log %s: %w", file, err)
		}
		writes = append(writes, found...)
	}
	return writes, nil
}

func readFile(name, user string, from, to time.Time) ([]write, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseWrites(file, user, from, to)
}

// parseWrites reads one JSON object a line. The last line may be half written.
func parseWrites(log io.Reader, user string, from, to time.Time) ([]write, error) {
	var writes []write
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), user) {
			continue
		}
		var one write
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			continue
		}
		inTime := !one.Received.Before(from) && one.Received.Before(to)
		if one.User.Username == user && inTime && isWrite(one.Verb) && one.Stage == "ResponseComplete" {
			writes = append(writes, one)
		}
	}
	return writes, lines.Err()
}

func isWrite(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

// counted is what the operator wrote.
type counted struct {
	lease, total int
	by           map[string]int // by what was done to what
	where        map[string]int // by namespace
}

func tally(writes []write) counted {
	seen := counted{by: map[string]int{}, where: map[string]int{}}
	for _, one := range writes {
		ref := one.ObjectRef
		if ref.APIGroup == "coordination.k8s.io" && ref.Resource == "leases" {
			seen.lease++
			continue
		}
		what := ref.Resource
		if ref.Subresource != "" {
			what += "/" + ref.Subresource
		}
		seen.total++
		seen.where[ref.Namespace]++
		seen.by[fmt.Sprintf("%s\t%s\t%s/%s\t%d", one.Verb, what, ref.Namespace, ref.Name, one.ResponseStatus.Code)]++
	}
	return seen
}

func (c counted) in(namespace string) int { return c.where[namespace] }

// rows are the writes as a table; what was done often is one row.
func (c counted) rows() [][]string {
	rows := make([][]string, 0, len(c.by)+1)
	rows = append(rows, []string{"verb", "resource", "object", "answer", "times"})
	for _, kind := range slices.Sorted(maps.Keys(c.by)) {
		rows = append(rows, append(strings.Split(kind, "\t"), fmt.Sprint(c.by[kind])))
	}
	return rows
}
