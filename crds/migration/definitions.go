package migration

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Definitions reads and marks definitions for a migration. Errors are the API server's own.
type Definitions interface {
	// Get reads a definition from the API server, not from a cache.
	Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error)
	// Annotate makes the annotations the only ones that the field manager owns on the definition, by server-side apply. It returns the
	// resulting definition, or a conflict if the definition has another UID.
	Annotate(ctx context.Context, name string, uid types.UID, manager string, annotations map[string]string) (*apiextensionsv1.CustomResourceDefinition, error)
	// SetStoredVersions replaces status.storedVersions. It returns a conflict if the definition has another resourceVersion.
	SetStoredVersions(ctx context.Context, name, resourceVersion string, versions []string) error
}

type definitions struct {
	client dynamic.ResourceInterface
}

// NewDefinitions returns the definitions of the client's cluster.
func NewDefinitions(client dynamic.Interface) Definitions {
	return definitions{client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource(resource))}
}

func (d definitions) Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	object, err := d.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return typed(object)
}

func (d definitions) Annotate(ctx context.Context, name string, uid types.UID, manager string, annotations map[string]string) (*apiextensionsv1.CustomResourceDefinition, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(),
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": name, "uid": uid, "annotations": annotations},
	})
	if err != nil {
		return nil, err
	}
	force := true
	object, err := d.client.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
	if err != nil {
		return nil, err
	}
	return typed(object)
}

func (d definitions) SetStoredVersions(ctx context.Context, name, resourceVersion string, versions []string) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   map[string]any{"storedVersions": versions},
	})
	if err != nil {
		return err
	}
	_, err = d.client.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}

func typed(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
		return nil, fmt.Errorf("read definition %s: %w", object.GetName(), err)
	}
	return definition, nil
}
