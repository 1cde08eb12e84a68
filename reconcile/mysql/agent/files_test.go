package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatFilesAreFor has the names that MySQL uses with a member's settings.
func TestWhatFilesAreFor(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]fileKind{
		"binlog.000001": filesBinaryLog, "binlog.index": filesBinaryLog, "relay.000002": filesRelayLog, "relay.index": filesRelayLog,
		"#innodb_redo/#ib_redo10": filesRedoLog, "#innodb_redo/#ib_redo11_tmp": filesRedoLog, "ib_logfile0": filesRedoLog,
		"undo_001": filesUndo, "more.ibu": filesUndo,
		"ibtmp1": filesTemporary, "#innodb_temp/temp_1.ibt": filesTemporary, "shop/#sql-ib1075-3.ibd": filesTemporary, "shop/#sql-1_9.ibd": filesTemporary,
		"ibdata1": filesData, "mysql.ibd": filesData, "#ib_16384_0.dblwr": filesData, "auto.cnf": filesData, "shop/orders.ibd": filesData, "shop/orders#p#p0.ibd": filesData,
		"relays/a.ibd": filesData, "binlog/binlog.ibd": filesData, "shop/undo_001.ibd": filesData, "#clone/#view_status": filesData,
	} {
		folder, name := filepath.Split(file)
		if got := kindOf(strings.TrimSuffix(folder, "/"), name); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
}

// TestUsageByKind: only files of the data directory and of its folders count, with the space that they take.
func TestUsageByKind(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	for _, folder := range []string{"shop", "shop/deeper", "#innodb_redo"} {
		if err := os.MkdirAll(filepath.Join(layout.DataDir(), folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const block = 64 << 10
	add := func(name string, blocks int) {
		t.Helper()
		write(t, filepath.Join(layout.DataDir(), name), string(make([]byte, blocks*block)))
	}
	for name, blocks := range map[string]int{"binlog.000001": 1, "binlog.000002": 2, "#innodb_redo/#ib_redo1": 4, "shop/orders.ibd": 5, "shop/#sql-1.ibd": 6, "shop/deeper/a.ibd": 7} {
		add(name, blocks)
	}
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "large"), string(make([]byte, 8*block)))
	for link, target := range map[string]string{"linked": elsewhere, "shop/linked.ibd": filepath.Join(elsewhere, "large")} {
		if err := os.Symlink(target, filepath.Join(layout.DataDir(), link)); err != nil {
			t.Fatal(err)
		}
	}
	look := func(most int, want map[fileKind]int64) {
		t.Helper()
		found, err := layout.usage(most)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("of %d entries (-want +got):\n%s", most, diff)
		}
	}
	all := map[fileKind]int64{filesBinaryLog: 3 * block, filesRelayLog: 0, filesRedoLog: 4 * block, filesUndo: 0, filesTemporary: 6 * block, filesData: 5 * block}
	look(100, all)
	delete(all, filesData)
	delete(all, filesTemporary)
	look(7, all)
	if found, err := layout.usage(2); err == nil {
		t.Errorf("the data directory alone has more entries than the limit, but usage counts %v", found)
	}
	if err := os.RemoveAll(layout.DataDir()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, layout.DataDir()); err != nil {
		t.Fatal(err)
	}
	if found, err := layout.usage(100); err == nil {
		t.Errorf("usage follows a link, and counts %v", found)
	}
}
