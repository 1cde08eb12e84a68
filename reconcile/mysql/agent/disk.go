package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// diskEvery is how often the agent reads the free space of the volume. diskFor is how long a result is valid, because storage that
	// hangs returns none.
	diskEvery = time.Second
	diskFor   = time.Minute
)

// diskLevel returns how full a volume is. A level ends at more free space than it began at, so that it does not flap.
func diskLevel(was replication.DiskLevel, size, free int64) replication.DiskLevel {
	full := fullBelow(size)
	switch {
	case free < full, was == replication.DiskFull && free < 2*full:
		return replication.DiskFull
	case free < size/100*15, was != replication.DiskRoomy && free < size/5:
		return replication.DiskPressure
	}
	return replication.DiskRoomy
}

// fullBelow returns the free space below which a volume counts as full, in bytes.
func fullBelow(size int64) int64 { return min(size/20, most) }

// disk returns the last known space of the volume, or nothing if it is too old. The caller must hold the lock.
func (a *Agent) disk(now time.Time) replication.Disk {
	if now.Sub(a.diskSeen) > diskFor {
		return replication.Disk{}
	}
	return a.status.Disk
}

// watchDisk reads the free space of the volume until the context ends. It runs concurrently with the agent's loop: storage that hangs must
// not delay a look at mysqld.
func (a *Agent) watchDisk(ctx context.Context) {
	told, kept := "", ballast{file: a.layout.ballast()}
	for {
		problem := ""
		if err := a.lookAtDisk(&kept); err != nil {
			problem = err.Error()
		}
		if problem != told && problem != "" {
			a.log.Info("cannot watch the free space of the volume, will try again", "error", problem)
		}
		told = problem
		select {
		case <-ctx.Done():
			return
		case <-time.After(diskEvery):
		}
	}
}

// lookAtDisk reports the free space and maintains the ballast.
func (a *Agent) lookAtDisk(kept *ballast) error {
	size, free, err := a.layout.room()
	if err != nil {
		return err
	}
	a.mu.Lock()
	was := a.status.Disk
	now := replication.Disk{Size: size, Free: free, Level: diskLevel(was.Level, size, free)}
	a.status.Disk, a.diskSeen = now, time.Now()
	a.mu.Unlock()
	if now.Level != was.Level {
		a.log.Info("free space on the volume reached another level", "level", now.Level, "size", size, "free", free)
	}
	if err := kept.keep(now); err != nil {
		return fmt.Errorf("maintain the ballast file: %w", err)
	}
	return nil
}
