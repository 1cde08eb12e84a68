package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// packed is an object in the form in which a cache holds it: as JSON. Decoded, as maps of maps, it would take five times the memory. What is asked
// for most often is beside it.
type packed struct {
	namespace, name, version string
	uid, controller          types.UID
	// unseen is what isUnseen reports of the object.
	unseen  bool
	content []byte
}

// pack returns an object as a cache holds it; anything but an unstructured object as it is.
func pack(item any) any {
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item
	}
	content, err := json.Marshal(object.Object)
	if err != nil {
		return item
	}
	small := &packed{
		namespace: object.GetNamespace(), name: object.GetName(), version: object.GetResourceVersion(), uid: object.GetUID(),
		unseen:  isUnseen(object),
		content: append(make([]byte, 0, len(content)), content...), // the encoder's buffer may be much larger
	}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		small.controller = controller.UID
	}
	return small
}

// unpack decodes an object anew: whoever asked may change it.
func (p *packed) unpack() (*unstructured.Unstructured, bool) {
	object := &unstructured.Unstructured{}
	return object, json.Unmarshal(p.content, &object.Object) == nil
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, by which client-go learns an object's key and version.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, ResourceVersion: p.version, UID: p.uid}
}
