package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// probeEvery is the pause between two writes that show whether the volume works.
	probeEvery = time.Second
	// probeSize is how many bytes the agent writes, always to the same place.
	probeSize = 512
	// calmWrites is how many writes in a row make a volume sound again for some time.
	calmWrites = 30
)

// volumeProbe knows how writes to the volume go. The zero value knows nothing. It counts pauses and reads no clock: while the machine or
// the agent stands still, the volume is not late.
type volumeProbe struct {
	mu   sync.Mutex
	last replication.VolumeProbe
	// calmAfter is how many more writes must end in time, and without an error, for the volume to be sound again for some time.
	calmAfter int
}

// report is what the member says of its volume.
func (p *volumeProbe) report() replication.VolumeProbe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// waits notes that a write has not returned for another pause.
func (p *volumeProbe) waits() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last.IsKnown = true
	p.last.StuckFor += probeEvery
	p.judge()
}

// judge notes whether the volume was sound lately. The caller must hold the lock.
func (p *volumeProbe) judge() {
	if !p.last.IsSound() {
		p.calmAfter = calmWrites
	}
	p.last.WasUnsound = p.calmAfter > 0
}

// ended notes how a write ended. It reports whether writes fail in another way than before. Without room, a volume works: a file that is
// there can be written again.
func (p *volumeProbe) ended(err error) (isNews bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.last
	p.last = replication.VolumeProbe{IsKnown: err == nil || isFull(err) || isVolumeFailure(err)}
	if isVolumeFailure(err) {
		p.last.Failure, p.last.FailingFor = err.Error(), was.FailingFor+was.StuckFor+probeEvery
	}
	p.calmAfter = max(0, p.calmAfter-1)
	p.judge()
	return was.IsKnown != p.last.IsKnown || was.Failure != p.last.Failure
}

// isVolumeFailure reports whether a volume that fails returns this error. Others have causes that do not stop mysqld.
func isVolumeFailure(err error) bool {
	failures := []error{syscall.EIO, syscall.EROFS, syscall.EUCLEAN, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENOTCONN, syscall.ESHUTDOWN, syscall.EHOSTDOWN}
	return slices.ContainsFunc(failures, func(failure error) bool { return errors.Is(err, failure) })
}

// startProbes writes to the volume until the context ends. The function that it returns waits for the end of the last write, if that comes
// soon.
func (a *Agent) startProbes(ctx context.Context) (awaitEnd func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.probeVolume(ctx)
	}()
	return func() { <-ended }
}

// probeVolume writes to the volume until the context ends. There is one write at a time: one that does not return stops no other goroutine.
func (a *Agent) probeVolume(ctx context.Context) {
	file, ended := probeFile{path: a.layout.probeFile()}, make(chan error, 1)
	for content := byte(0); ; content++ {
		go func() { ended <- file.write(content) }()
		if !a.awaitProbe(ctx, ended) {
			return
		}
		select {
		case <-ctx.Done():
			file.close()
			return
		case <-time.After(probeEvery):
		}
	}
}

// awaitProbe waits for the end of a write. It returns false if the context ends before.
func (a *Agent) awaitProbe(ctx context.Context, ended <-chan error) bool {
	for {
		select {
		case err := <-ended:
			if a.volume.ended(err) && err != nil {
				a.log.Info("cannot write to the volume, will try again", "error", err.Error())
			}
			return true
		case <-ctx.Done():
			select {
			case err := <-ended:
				_ = a.volume.ended(err)
				return true
			case <-time.After(probeEvery):
				return false
			}
		case <-time.After(probeEvery):
			a.volume.waits()
			a.mayHaveNews()
		}
	}
}

// probeFile is the file that the agent writes. It stays open.
type probeFile struct {
	path string
	file *os.File
}

// write replaces the content of the file and flushes it. After a failure, the next write opens the file again.
func (f *probeFile) write(content byte) (err error) {
	if f.file == nil {
		if f.file, err = openRegular(f.path, probeSize, os.O_RDWR|os.O_CREATE); err != nil {
			return fmt.Errorf("open a file on the volume: %w", err)
		}
	}
	_, err = f.file.WriteAt(bytes.Repeat([]byte{content}, probeSize), 0)
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		f.close()
		return fmt.Errorf("write to the volume: %w", err)
	}
	return nil
}

func (f *probeFile) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}
