package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const operatorUser = "system:serviceaccount:default:mysql-operator"

// entry is a line of the audit log, at so many seconds after twelve.
func entry(verb, user, resource, name, second string) string {
	group := ""
	if resource == "leases" {
		group = "coordination.k8s.io"
	}
	return `{"stage":"ResponseComplete","verb":"` + verb + `","user":{"username":"` + user + `"},"objectRef":{"resource":"` + resource + `","apiGroup":"` + group +
		`","namespace":"shop","name":"` + name + `"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T12:00:` + second + `.000000Z"}` + "\n"
}

func TestWritesAtRest(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 1, 12, 0, 10, 0, time.UTC)
	kubelet := "system:node:node-1"
	for name, story := range map[string]struct {
		log          string
		lease, total int
	}{
		"only the lease": {entry("update", operatorUser, "leases", "mysql-operator", "11") + entry("update", operatorUser, "leases", "mysql-operator", "13"), 2, 0},
		"a status that is written again and again": {
			entry("patch", operatorUser, "mysqlclusters", "c", "11") + entry("patch", operatorUser, "mysqlclusters", "c", "12"), 0, 2,
		},
		"what others write": {entry("patch", kubelet, "pods", "c-0", "11"), 0, 0},
		"what names the operator is not what it wrote": {
			entry("patch", kubelet, "pods", operatorUser, "11"), 0, 0,
		},
		"before, and from the end on":   {entry("patch", operatorUser, "pods", "c-0", "09") + entry("patch", operatorUser, "pods", "c-0", "20"), 0, 0},
		"at the very beginning":         {entry("patch", operatorUser, "pods", "c-0", "10"), 0, 1},
		"reads are no writes":           {entry("get", operatorUser, "pods", "c-0", "11"), 0, 0},
		"events are writes":             {entry("create", operatorUser, "events", "c.1", "11"), 0, 1},
		"a last line cut short":         {entry("patch", operatorUser, "pods", "c-0", "11") + entry("patch", operatorUser, "pods", "c-0", "12")[:200], 0, 1},
		"a lease called like something": {entry("update", operatorUser, "leases", "other", "11"), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes, err := parseWrites(strings.NewReader(story.log), operatorUser, from, from.Add(10*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			seen := tally(writes)
			if seen.lease != story.lease || seen.total != story.total {
				t.Errorf("got %d of the lease and %d others, want %d and %d", seen.lease, seen.total, story.lease, story.total)
			}
		})
	}
}

func TestWritesAreFoundInRotatedLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, content := range map[string]string{
		"audit.log":                         entry("patch", operatorUser, "mysqlclusters", "c", "12"),
		"audit-2026-01-01T12-00-11.500.log": entry("patch", operatorUser, "mysqlclusters", "c", "11"),
		"kube-apiserver.log":                entry("patch", operatorUser, "mysqlclusters", "c", "11"),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	from := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	writes, err := readWrites(filepath.Join(dir, "audit.log"), operatorUser, from, from.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	seen := tally(writes)
	if seen.in("shop") != 2 || seen.in("elsewhere") != 0 {
		t.Errorf("got %v", seen.where)
	}
	want := [][]string{{"verb", "resource", "object", "answer", "times"}, {"patch", "mysqlclusters", "shop/c", "200", "2"}}
	if diff := cmp.Diff(want, seen.rows()); diff != "" {
		t.Error(diff)
	}
}
