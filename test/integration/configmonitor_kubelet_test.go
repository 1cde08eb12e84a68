package integration

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mysql-operator/mysql-operator/schema"
)

// kubelet plays the nodes' part for the Pods of a namespace: it reports them as ready. It takes note of all Pods there ever were, and of
// how few of a workload's were ready at one time.
type kubelet struct {
	mu     sync.Mutex
	uids   map[string]map[string]bool
	fewest map[string]int
	broken bool
}

func startKubelet(t *testing.T, s *shop) *kubelet {
	t.Helper()
	k := &kubelet{uids: map[string]map[string]bool{}, fewest: map[string]int{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { k.round(ctx, s) }, 10*time.Millisecond)
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return k
}

// round looks at all Pods, and then reports one of each workload that is not ready as ready.
func (k *kubelet) round(ctx context.Context, s *shop) {
	items, err := s.Dynamic.Resource(coreResource("pods")).Namespace(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	ready, unready := map[string]int{}, []string{}
	for _, item := range items.Items {
		var pod corev1.Pod
		if err := schema.Decode(&item, &pod); err != nil {
			continue
		}
		name := pod.Labels["name"]
		k.note(name, string(pod.UID))
		if isReady(pod) {
			ready[name]++
		} else {
			unready = append(unready, pod.Name)
		}
	}
	if k.count(ready) {
		return
	}
	for _, name := range unready {
		status := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		// A Pod may be gone by now; the next round shows.
		_, _ = s.Dynamic.Resource(coreResource("pods")).Namespace(s.namespace).Patch(ctx, name, "application/strategic-merge-patch+json", status, metav1.PatchOptions{}, "status")
	}
}

func (k *kubelet) note(name, uid string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.uids[name] == nil {
		k.uids[name] = map[string]bool{}
	}
	k.uids[name][uid] = true
}

// count notes how many Pods are ready, and reports whether the kubelet is broken.
func (k *kubelet) count(ready map[string]int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.uids {
		if fewest, watched := k.fewest[name]; watched && ready[name] < fewest {
			k.fewest[name] = ready[name]
		}
	}
	return k.broken
}

// observe begins to note how few of a workload's Pods are ready.
func (k *kubelet) observe(name string, replicas int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fewest[name] = replicas
}

// ever returns how many Pods of a workload there were, and how few were ready at one time.
func (k *kubelet) ever(name string) (pods, fewest int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.uids[name]), k.fewest[name]
}

// setBroken makes new Pods fail to become ready, as bad data would, or ends that.
func (k *kubelet) setBroken(broken bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = broken
}
