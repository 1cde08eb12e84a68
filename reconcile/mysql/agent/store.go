package agent

import (
	"errors"
	"reflect"
	"time"
)

// The agent stores its state before it does what the state says. A volume that stands still must not stop its other work: the operator asks
// for its report, and orders it to take no more writes. So a write of the state gets some time. After that the agent counts it as failed,
// although it may complete later. Then the volume has another state than the agent. So there is no other write before that one has ended.
// If nothing is stored for a while after that, the agent stores its own state again.

const (
	// storeFor is how long the agent waits for a write of its state. Slow network storage takes less.
	storeFor = 5 * time.Second
	// adoptFor is how long a late write may become the state that the operator or the loop asks for again.
	adoptFor = 5 * time.Second
)

// errVolumeStands means that the state is not certain to be stored.
var errVolumeStands = errors.New("write the member's state: the volume has not completed an earlier write")

// lateWrite is a write of the state that may take long. err is how it ended, once ended is closed.
type lateWrite struct {
	state state
	ended chan struct{}
	err   error
}

// startSave begins to save a state.
func (a *Agent) startSave(next state) *lateWrite {
	write := &lateWrite{state: next, ended: make(chan struct{})}
	go func() {
		defer close(write.ended)
		write.err = saveState(a.layout.stateFile(), next)
	}()
	return write
}

// isOver reports whether the write has ended.
func (w *lateWrite) isOver() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// completed reports whether the volume certainly has this state by now.
func (w *lateWrite) completed(wanted state) bool {
	return w.isOver() && w.err == nil && reflect.DeepEqual(w.state, wanted)
}

// saveInTime saves a state. The caller must hold the lock. If that fails after a late write, the agent still stores its own state again.
func (a *Agent) saveInTime(next state) error {
	switch {
	case a.late != nil && a.late.completed(next):
		return nil
	case a.late != nil && !a.late.isOver(), a.standsStill():
		return errVolumeStands
	}
	write, limit := a.startSave(next), time.NewTimer(storeFor)
	defer limit.Stop()
	select {
	case <-write.ended:
		if write.err == nil {
			a.late = nil
		}
		return write.err
	case <-limit.C:
	}
	a.late = write
	go a.settle(write)
	return errVolumeStands
}

// settle waits for the end of a late write, and makes the volume have the agent's state again.
func (a *Agent) settle(write *lateWrite) {
	for write != nil {
		<-write.ended
		<-time.After(adoptFor)
		write = a.settled(write)
	}
}

// settled ends a late write, unless a later one has taken its place. If the volume may not have the agent's state, it begins another one
// and returns it.
func (a *Agent) settled(write *lateWrite) *lateWrite {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.late != write {
		return nil
	}
	a.late = nil
	if !write.completed(a.kept) {
		a.late = a.startSave(a.kept)
	}
	return a.late
}

// standsStill reports whether the volume has completed no write for so long that another one should not be tried.
func (a *Agent) standsStill() bool { return a.volume.report().StuckFor >= storeFor }
