package reconcile

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a cache keeps of an object's content at most: whoever names an image or a container writes what Kubernetes repeats in a status. A
// length is in bytes.
const (
	// maxItems is how many items of a list are kept.
	maxItems = 24
	// maxText is how much is kept of a text, maxTexts of all texts of an object that are longer than shortText. Kubelet bounds what one
	// container of a Pod says at its end, and what all say, to as much (Kubernetes documentation, "Determine the Reason for Pod Failure").
	maxText   = 4 << 10
	maxTexts  = 12 << 10
	shortText = 64
)

// Keep drops of an object's content all but some fields, and bounds what is left. A path is names with dots between them, and goes through
// lists into each of their items. Where it ends at an object, nothing is kept but that it is there. What Client.ApplyFields compares must
// be among them.
func Keep(object *unstructured.Unstructured, paths ...string) {
	kept := &unstructured.Unstructured{Object: fieldTreeOf(paths).in(object)}
	kept.SetAPIVersion(object.GetAPIVersion())
	kept.SetKind(object.GetKind())
	kept.Object[metadataField] = object.Object[metadataField]
	object.Object = kept.Object
}

// KeepPod is a Transform for Pods: it keeps who they are, where they run and how they are.
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

// Conditions are the paths of what matters of the conditions in a status.
func Conditions() []string {
	return []string{"status.conditions.type", "status.conditions.status", "status.conditions.reason", "status.conditions.message"}
}

// DeploymentStatus are the paths of what matters of a Deployment's status.
func DeploymentStatus() []string {
	return append(Conditions(), "status.observedGeneration", "status.replicas", "status.updatedReplicas", "status.readyReplicas", "status.availableReplicas")
}

// fieldTree is what a cache keeps of an object.
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

// in returns the fields of an object.
func (f fieldTree) in(object *unstructured.Unstructured) map[string]any {
	left := maxTexts
	kept, _ := f.of(object.Object, &left).(map[string]any)
	return kept
}

// of returns the fields of a value; left is how much long text there is room for.
func (f fieldTree) of(value any, left *int) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(f)) { // in order: what room there is must not depend on chance
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

// fit cuts a text that is too long, or for which there is not enough room.
func fit(text string, left *int) string {
	if len(text) <= shortText {
		return text
	}
	kept := cut(text, max(shortText, min(maxText, *left)))
	*left -= min(*left, len(kept))
	return kept
}
