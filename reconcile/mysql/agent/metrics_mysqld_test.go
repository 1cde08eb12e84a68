package agent

import (
	"strconv"
	"testing"
)

// TestMetricsOfAPrimaryMysqld: a member measures its mysqld, its volume and its tables.
func TestMetricsOfAPrimaryMysqld(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	m := startRealMember(t, ca)
	m.leads(t, 1, 0)
	execute(t, m.open(t, "root", "root's", nil, ca), "CREATE DATABASE shop", "CREATE TABLE shop.log (line TEXT)", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
	number := func(name string) float64 {
		t.Helper()
		value, err := strconv.ParseFloat(scrape(t, m.agent)[name], 64)
		if err != nil {
			t.Errorf("%s is not a number: %v", name, err)
		}
		return value
	}
	m.lookAgain()
	m.until(t, "the table without a key is counted", func() bool { return number("tables_without_primary_key") == 1 })
	m.until(t, "mysqld is measured", func() bool { return number("open_files_limit") > 0 })
	if limit, wanted := number("open_files_limit"), number("open_files_wanted"); wanted != 5000 || limit < 1000 {
		t.Errorf("mysqld may open %.0f files, and wants %.0f", limit, wanted)
	}
	if used, pool := number("memory_used_bytes"), 128.0*(1<<20); used < pool || used > 4*pool {
		t.Errorf("mysqld uses %.0f bytes, and its buffer pool has %.0f", used, pool)
	}
	files, err := m.layout.usage(mostFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range fileKinds() {
		if hasSome := files[kind] > 0; hasSome == (kind == filesRelayLog) {
			t.Errorf("files of the kind %s take %d bytes", kind, files[kind])
		}
	}
	if redo := files[filesRedoLog]; redo > 200<<20 {
		t.Errorf("the redo log takes %d bytes", redo)
	}
	m.crashes(t)
	m.until(t, "mysqld is measured again", func() bool { return number("memory_used_bytes") > 0 })
}
