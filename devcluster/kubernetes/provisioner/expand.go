package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// annProvisionedBy is the annotation that names the provisioner of a volume.
const annProvisionedBy = "pv.kubernetes.io/provisioned-by"

// expander grows volumes to the size that their claims request, as the external-resizer does for CSI drivers: first the volume's capacity,
// then the claim's status.
type expander struct {
	client kubernetes.Interface
	claims corelisters.PersistentVolumeClaimLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newExpander(client kubernetes.Interface, factory informers.SharedInformerFactory) (*expander, error) {
	claims := factory.Core().V1().PersistentVolumeClaims()
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](50*time.Millisecond, 30*time.Second)
	e := &expander{client: client, claims: claims.Lister(), queue: workqueue.NewTypedRateLimitingQueue(backoff)}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    e.enqueue,
		UpdateFunc: func(_, changed any) { e.enqueue(changed) },
	}
	if _, err := claims.Informer().AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("watch claims: %w", err)
	}
	return e, nil
}

func (e *expander) enqueue(object any) {
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" {
		e.queue.Add(cache.MetaObjectToName(claim))
	}
}

func (e *expander) run(ctx context.Context) {
	defer context.AfterFunc(ctx, e.queue.ShutDown)()
	for {
		name, stop := e.queue.Get()
		if stop {
			return
		}
		if err := e.expand(ctx, name); err != nil {
			klog.ErrorS(err, "expand volume", "claim", name)
			e.queue.AddRateLimited(name)
		} else {
			e.queue.Forget(name)
		}
		e.queue.Done(name)
	}
}

func (e *expander) expand(ctx context.Context, name cache.ObjectName) error {
	claim, err := e.claims.PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, grows := growth(claim); !grows {
		return nil
	}
	pv, err := e.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pv.Annotations[annProvisionedBy] != Name {
		return nil
	}
	size, _ := growth(claim)
	capacity := map[string]any{string(corev1.ResourceStorage): size.String()}
	if held := pv.Spec.Capacity[corev1.ResourceStorage]; held.Cmp(size) < 0 {
		if err := e.patchVolume(ctx, pv.Name, capacity); err != nil {
			return err
		}
	}
	return e.patchClaim(ctx, claim, capacity)
}

// growth returns the size that a claim requests, and whether the claim is bound and this is more than it has.
func growth(claim *corev1.PersistentVolumeClaim) (resource.Quantity, bool) {
	asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return asked, claim.Status.Phase == corev1.ClaimBound && asked.Cmp(has) > 0
}

func (e *expander) patchVolume(ctx context.Context, name string, capacity map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"capacity": capacity}})
	if err != nil {
		return err
	}
	_, err = e.client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (e *expander) patchClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, capacity map[string]any) error {
	status := map[string]any{"capacity": capacity, "conditions": nil}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = e.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
