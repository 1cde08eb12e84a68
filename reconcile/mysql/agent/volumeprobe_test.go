package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// TestWhatTheWritesToAVolumeSay about it, one after the other.
func TestWhatTheWritesToAVolumeSay(t *testing.T) {
	t.Parallel()
	var p volumeProbe
	broken := fmt.Errorf("write to the volume: %w", syscall.EIO)
	works := replication.VolumeProbe{IsKnown: true}
	for _, moment := range []struct {
		name   string
		waits  int
		err    error
		want   replication.VolumeProbe
		isNews bool
	}{
		{"it works", 0, nil, works, true},
		{"it is slow", 2, nil, works, false},
		{"it has no room", 0, syscall.ENOSPC, works, false},
		{"its quota has no room", 0, syscall.EDQUOT, works, false},
		{"it returns an error", 0, broken, replication.VolumeProbe{IsKnown: true, FailingFor: probeEvery, Failure: broken.Error(), WasUnsound: true}, true},
		{"it returns the same again, after a while", 2, broken, replication.VolumeProbe{IsKnown: true, FailingFor: 4 * probeEvery, Failure: broken.Error(), WasUnsound: true}, false},
		{"it works again", 0, nil, replication.VolumeProbe{IsKnown: true, WasUnsound: true}, true},
		{"the agent has no file left to open", 0, syscall.EMFILE, replication.VolumeProbe{WasUnsound: true}, true},
		{"something else is in the place of the file", 0, &oddFileError{}, replication.VolumeProbe{WasUnsound: true}, false},
		{"the volume is not there", 0, fs.ErrNotExist, replication.VolumeProbe{WasUnsound: true}, false},
	} {
		for range moment.waits {
			p.waits()
		}
		if got := p.report(); moment.waits > 0 && got.StuckFor != time.Duration(moment.waits)*probeEvery {
			t.Errorf("%s: meanwhile it says %+v", moment.name, got)
		}
		if isNews := p.ended(moment.err); isNews != moment.isNews || p.report() != moment.want {
			t.Errorf("%s: %+v, want %+v; news: %t", moment.name, p.report(), moment.want, isNews)
		}
	}
}

// TestAVolumeIsSoundAgainAfterSomeWrites: one that stands still now and then must not get the primary of another such volume.
func TestAVolumeIsSoundAgainAfterSomeWrites(t *testing.T) {
	t.Parallel()
	var p volumeProbe
	for range replication.StuckLeast / probeEvery {
		p.waits()
	}
	for write := range calmWrites {
		p.ended(nil)
		if p.report().WasUnsound != (write < calmWrites-1) {
			t.Errorf("after %d writes it reports %+v", write+1, p.report())
		}
	}
}

// TestTheProbeWritesInPlace, and follows no link that another program has put there.
func TestTheProbeWritesInPlace(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	file := probeFile{path: layout.probeFile()}
	defer file.close()
	for number := range byte(3) {
		if err := file.write(number); err != nil || len(read(t, file.path)) != probeSize {
			t.Errorf("write %d: %v, the file has %d bytes", number, err, len(read(t, file.path)))
		}
	}
	target := layout.stateFile()
	write(t, target, "{}")
	planted := probeFile{path: layout.probeFile() + ".planted"}
	if err := os.Symlink(target, planted.path); err != nil {
		t.Fatal(err)
	}
	if err := planted.write(1); err == nil || isVolumeFailure(err) || read(t, target) != "{}" {
		t.Errorf("it follows a link: %v", err)
	}
	large := probeFile{path: layout.probeFile() + ".large"}
	write(t, large.path, string(make([]byte, probeSize+1)))
	if err := large.write(1); !errors.As(err, new(*oddFileError)) {
		t.Errorf("it writes to a large file: %v", err)
	}
}
