package reconcile

import (
	"sync"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// packer packs the objects of one watch. They are very similar: each is compressed with the first one as the dictionary, which takes a
// quarter of the memory of its JSON, or less. Decoded, as maps of maps, an object would take five times the memory of its JSON.
type packer struct {
	once  sync.Once
	first *s2.Dict
}

// packed is an object in the form in which a cache holds it. Fields that are read often are stored uncompressed in addition.
type packed struct {
	namespace, name, version string
	uid, controller          types.UID
	// unseen is the result of isUnseen for the object.
	unseen bool
	// content is JSON, compressed with first unless that is nil.
	content []byte
	first   *s2.Dict
}

// pack returns an object in the form in which a cache holds it. It returns anything but an unstructured object as it is.
func (p *packer) pack(item any) any {
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item
	}
	content, err := json.Marshal(object.Object)
	if err != nil {
		return item
	}
	p.once.Do(func() { p.first = s2.MakeDict(content, nil) })
	if p.first != nil { // an object without content is too short for a dictionary
		content = p.first.Encode(nil, content)
	}
	small := &packed{
		namespace: object.GetNamespace(), name: object.GetName(), version: object.GetResourceVersion(), uid: object.GetUID(),
		unseen: isUnseen(object), first: p.first,
		content: append(make([]byte, 0, len(content)), content...), // the encoders' buffers are much larger
	}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		small.controller = controller.UID
	}
	return small
}

// unpack decodes an object at each call: the caller may change it.
func (p *packed) unpack() (*unstructured.Unstructured, bool) {
	content := p.content
	if p.first != nil {
		var err error
		if content, err = p.first.Decode(nil, content); err != nil {
			return nil, false
		}
	}
	object := &unstructured.Unstructured{}
	return object, json.Unmarshal(content, &object.Object) == nil
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, through which client-go reads an object's key and version.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, ResourceVersion: p.version, UID: p.uid}
}
