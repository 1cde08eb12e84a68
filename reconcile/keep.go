package reconcile

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The limits of what a cache keeps of an object's content. Kubernetes repeats in a status what users write as names of images and
// containers. Lengths are in bytes.
const (
	// maxItems is how many items of a list are kept.
	maxItems = 24
	// maxText limits one text, maxTexts all texts of an object that are longer than shortText. Kubelet limits the termination message of
	// one container, and those of all containers of a Pod, to the same lengths (Kubernetes documentation, "Determine the Reason for Pod
	// Failure").
	maxText   = 4 << 10
	maxTexts  = 12 << 10
	shortText = 64
)

// Keep removes all content of an object except some fields, and limits the size of what remains. A path is field names separated by dots.
// It descends into each item of a list. If a path ends at an object, only its presence is kept. The paths must include what
// Client.ApplyFields compares.
func Keep(object *unstructured.Unstructured, paths ...string) {
	kept := &unstructured.Unstructured{Object: fieldTreeOf(paths).in(object)}
	kept.SetAPIVersion(object.GetAPIVersion())
	kept.SetKind(object.GetKind())
	kept.Object[metadataField] = object.Object[metadataField]
	object.Object = kept.Object
}

// KeepPod is a Transform for Pods: it keeps their identity, node and status.
func KeepPod(item any) (any, error) {
	trimmed, err := TrimChild(item)
	pod, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	pod.SetAnnotations(nil)
	Keep(pod, podFields()...)
	return pod, nil
}

func podFields() []string {
	fields := append(Conditions(), "spec.nodeName", "status.phase", "status.podIP", "status.reason", "status.message")
	for _, list := range []string{"status.initContainerStatuses.", "status.containerStatuses."} {
		fields = append(fields, list+"name", list+"state.running", list+"state.waiting.reason", list+"state.waiting.message")
		for _, ended := range []string{list + "state.terminated.", list + "lastState.terminated."} {
			fields = append(fields, ended+"exitCode", ended+"signal", ended+"reason", ended+"message")
		}
	}
	return fields
}

// Conditions are the paths of the fields that kinds read of the conditions in a status.
func Conditions() []string {
	return []string{"status.conditions.type", "status.conditions.status", "status.conditions.reason", "status.conditions.message"}
}

// DeploymentStatus are the paths of the fields that kinds read of a Deployment's status.
func DeploymentStatus() []string {
	return append(Conditions(), "status.observedGeneration", "status.replicas", "status.updatedReplicas", "status.readyReplicas", "status.availableReplicas")
}

// fieldTree is the fields of an object that a cache keeps.
type fieldTree map[string]fieldTree

func fieldTreeOf(paths []string) fieldTree {
	root := fieldTree{}
	for _, path := range paths {
		at := root
		for name := range strings.SplitSeq(path, ".") {
			if at[name] == nil {
				at[name] = fieldTree{}
			}
			at = at[name]
		}
	}
	return root
}

// in returns the kept fields of an object.
func (f fieldTree) in(object *unstructured.Unstructured) map[string]any {
	left := maxTexts
	kept, _ := f.of(object.Object, &left).(map[string]any)
	return kept
}

// of returns the kept fields of a value; left is how many more bytes of long texts may be kept.
func (f fieldTree) of(value any, left *int) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(f)) { // in order, so that the same texts are kept each time
			if content, found := value[name]; found {
				kept[name] = f[name].of(content, left)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, min(len(value), maxItems))
		for _, item := range value[:min(len(value), maxItems)] {
			kept = append(kept, f.of(item, left))
		}
		return kept
	case string:
		return fit(value, left)
	default:
		return value
	}
}

// fit cuts a text that is longer than maxText or than the remaining bytes in left.
func fit(text string, left *int) string {
	if len(text) <= shortText {
		return text
	}
	kept := cut(text, max(shortText, min(maxText, *left)))
	*left -= min(*left, len(kept))
	return kept
}
