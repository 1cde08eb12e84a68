package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const (
	// diskEvery is how often the agent looks at the room on the volume, diskFor how long a look counts: storage that hangs answers none.
	diskEvery = time.Second
	diskFor   = time.Minute
)

// diskLevel returns how full a volume is. A level ends with more room than it began with, so that it does not come and go.
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

// fullBelow is with how little room a volume counts as full, in bytes.
func fullBelow(size int64) int64 { return min(size/20, most) }

// disk is what is known of the room on the volume; nothing where the last look is too old. The caller holds the lock.
func (a *Agent) disk(now time.Time) replication.Disk {
	if now.Sub(a.diskSeen) > diskFor {
		return replication.Disk{}
	}
	return a.status.Disk
}

// watchDisk looks at the room on the volume until the context ends. It runs beside the agent's loop: storage that hangs must not hold up a
// look at mysqld.
func (a *Agent) watchDisk(ctx context.Context) {
	told, kept := "", ballast{file: a.layout.ballast()}
	for {
		problem := ""
		if err := a.lookAtDisk(&kept); err != nil {
			problem = err.Error()
		}
		if problem != told && problem != "" {
			a.log.Info("the volume is not guarded as it should be, will try again", "error", problem)
		}
		told = problem
		select {
		case <-ctx.Done():
			return
		case <-time.After(diskEvery):
		}
	}
}

// lookAtDisk reports the room and keeps the ballast.
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
		a.log.Info("the room on the volume changes", "level", now.Level, "size", size, "free", free)
	}
	if err := kept.keep(now); err != nil {
		return fmt.Errorf("keep ballast: %w", err)
	}
	return nil
}
