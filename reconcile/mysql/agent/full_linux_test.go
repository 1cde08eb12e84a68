package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fullVolume puts the member's volume on a separate file system without free space, with data on it, and with ballast if wanted.
func fullVolume(t *testing.T, layout Layout, withBallast bool) {
	t.Helper()
	if err := unix.Mount("tmpfs", layout.Volume, "tmpfs", 0, "mode=0750,size=1m"); err != nil {
		t.Skipf("mounting a volume requires root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(layout.Volume, 0); err != nil {
			t.Errorf("unmount the volume: %v", err)
		}
	})
	withData(t, layout)
	write(t, layout.stateFile(), `{"data":"Member","held":{}}`) // of a release that stored no server_id
	if withBallast {
		if err := reserve(layout.ballast(), 64<<10); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.Create(filepath.Join(layout.DataDir(), "binlog.000001"))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	for err == nil {
		_, err = data.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// TestAMemberStartsOnAFullVolume: mysqld must run for a user to free space. The ballast is there for that. Without it the server_id is for
// this start only.
func TestAMemberStartsOnAFullVolume(t *testing.T) {
	t.Parallel()
	for name, withBallast := range map[string]bool{"with ballast": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout, told := newLayout(t), &strings.Builder{}
			fullVolume(t, layout, withBallast)
			identity := who()
			identity.Tell = told
			if err := Prepare(layout, identity); err != nil {
				t.Fatal(err)
			}
			isPlain := strings.Contains(read(t, layout.serverConfig()), "server_id = 101\n")
			if isPlain == withBallast || isPlain != strings.Contains(told.String(), "the volume is full") {
				t.Errorf("the member has the server_id for one start: %t; it prints %q", isPlain, told)
			}
			if kept := stateOf(t, layout); (kept.ServerID != 0) != withBallast || kept.Data != memberState().Data {
				t.Errorf("the stored state is %+v", kept)
			}
			if exists(layout.ballast()) || exists(layout.stateFile()+".new") {
				t.Error("an unneeded file still takes space")
			}
		})
	}
}

// TestPlainServerIDsDiffer: the members of one cluster differ while their volumes are full.
func TestPlainServerIDsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[uint32]bool{}
	for ordinal := range 3 {
		layout := newLayout(t)
		fullVolume(t, layout, false)
		id, err := chooseServerID(layout, ordinal, io.Discard)
		if err != nil || seen[id] {
			t.Errorf("member %d has %d, error %v", ordinal, id, err)
		}
		seen[id] = true
	}
}
