package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// leftPatience is the longest time between two attempts to find objects that were deleted before a term.
const leftPatience = time.Minute

// lookForLeft queues the objects that may have been deleted before the term.
func (t *term) lookForLeft(work context.Context) {
	handler, ok := t.reconciler.(DeletionHandler)
	if !ok {
		return
	}
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 64, Cap: leftPatience}
	for work.Err() == nil {
		var left []types.NamespacedName
		err := recoverPanic(func() error {
			ctx, cancel := context.WithTimeout(work, t.passTimeout)
			defer cancel()
			var err error
			left, err = handler.ListDeleted(ctx)
			return err
		})
		if err == nil {
			t.queueGone(left)
			return
		}
		t.logger.V(1).Info("failed to find objects that were deleted before this term, retrying", logError, err.Error())
		timer := time.NewTimer(backoff.Step())
		select {
		case <-timer.C:
		case <-work.Done():
			timer.Stop()
		}
	}
}

// queueGone queues those objects that the cache does not have; all others get passes anyway.
func (t *term) queueGone(keys []types.NamespacedName) {
	for _, key := range keys {
		if _, found := t.controller.own.Get(key.Namespace, key.Name); !found {
			t.expectDeletion(key)
			t.controller.enqueue(key)
		}
	}
}

// expectDeletion notes an object for which the engine must call DeletionHandler.HandleDeletion when it is gone.
func (t *term) expectDeletion(key types.NamespacedName) {
	if _, ok := t.reconciler.(DeletionHandler); !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deletionsToHandle.Insert(key)
}

// endOf calls DeletionHandler.HandleDeletion for an object that is gone, unless HandleDeletion already succeeded. err is the error of
// observing the object.
func (t *term) endOf(work context.Context, key types.NamespacedName, found state, err error) error {
	handler, ok := t.reconciler.(DeletionHandler)
	if err != nil || !found.gone || !ok || !t.owes(key) {
		return err
	}
	ctx, cancel := context.WithTimeout(work, t.passTimeout)
	defer cancel()
	// Whatever this writes, no later pass needs to wait for: the object is gone.
	defer t.journal.forget(key)
	if err := handler.HandleDeletion(ctx, t.client(pass{key: key}, nil), key); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deletionsToHandle.Delete(key)
	return nil
}

func (t *term) owes(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deletionsToHandle.Has(key)
}
