package reconcile

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
)

// listen lets the Reconciler request passes.
func (t *term) listen(stop context.Context) {
	listener, ok := t.reconciler.(Listener)
	if !ok {
		return
	}
	err := recoverPanic(func() error {
		listener.Listen(logr.NewContext(stop, t.logger), func(key types.NamespacedName) {
			t.line.hurry(key)
			t.controller.enqueue(key)
		})
		return nil
	})
	if err != nil {
		t.metrics.panics.WithLabelValues(t.controller.Kind.Kind).Inc()
		t.logger.Error(err, "failed to listen for requests for passes, passes follow only watches and timers from now on")
	}
}
