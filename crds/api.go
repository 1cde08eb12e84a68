package crds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// API is what this package needs of the API server. Errors are the API server's own (k8s.io/apimachinery/pkg/api/errors distinguishes
// them).
type API interface {
	DefinitionAPI
	ServedAPI
}

// DefinitionAPI reads and writes definitions.
type DefinitionAPI interface {
	// Get reads a definition from the API server, not from a cache.
	Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error)
	// Apply sends a server-side apply and returns the resulting definition.
	Apply(ctx context.Context, name string, body []byte, options ApplyOptions) (*apiextensionsv1.CustomResourceDefinition, error)
	// Patch sends a JSON merge patch as the field manager, to the definition or to one of its subresources.
	Patch(ctx context.Context, name string, body []byte, manager string, subresource ...string) error
	// Watch returns the changes of one definition, starting at a resourceVersion.
	Watch(ctx context.Context, name, resourceVersion string) (watch.Interface, error)
}

// ServedAPI reads what the API server serves of a definition.
type ServedAPI interface {
	// Resources lists the resources that are served in a group and version; NotFound means that none are.
	Resources(ctx context.Context, group, version string) (*metav1.APIResourceList, error)
	// Columns returns the printed columns of the custom resources in a namespace, or of cluster-scoped ones if namespace is empty. It reads
	// no custom resource.
	Columns(ctx context.Context, of schema.GroupVersionResource, namespace string) ([]metav1.TableColumnDefinition, error)
	// Count returns the number of custom resources in all namespaces. It reads at most one.
	Count(ctx context.Context, of schema.GroupVersionResource) (int, error)
}

// ApplyOptions are those of a server-side apply.
type ApplyOptions struct {
	// Manager is the field manager.
	Manager string
	// Force takes the ownership of fields from other managers (force). Without it, such fields cause a conflict.
	Force bool
}

type restAPI struct {
	client rest.Interface
}

// NewAPI returns the API of the cluster that the configuration points to. It does not change the configuration.
func NewAPI(config *rest.Config) (API, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register definition types: %w", err)
	}
	own := rest.CopyConfig(config)
	own.GroupVersion, own.APIPath = &apiextensionsv1.SchemeGroupVersion, "/apis"
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.QPS, own.RateLimiter = -1, nil // polling is bounded here; a client-side throttle would only slow the boot
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("make a client for definitions: %w", err)
	}
	return restAPI{client}, nil
}

func (a restAPI) Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	object := &apiextensionsv1.CustomResourceDefinition{}
	err := a.client.Get().Resource(resource).Name(name).Do(ctx).Into(object)
	return object, unservedIsUnavailable(err)
}

func (a restAPI) Apply(ctx context.Context, name string, body []byte, options ApplyOptions) (*apiextensionsv1.CustomResourceDefinition, error) {
	object := &apiextensionsv1.CustomResourceDefinition{}
	request := a.client.Patch(types.ApplyPatchType).Resource(resource).Name(name)
	request.Param("fieldManager", options.Manager).Param("force", strconv.FormatBool(options.Force))
	err := request.Body(body).Do(ctx).Into(object)
	return object, unservedIsUnavailable(err)
}

func (a restAPI) Patch(ctx context.Context, name string, body []byte, manager string, subresource ...string) error {
	request := a.client.Patch(types.MergePatchType).Resource(resource).Name(name).SubResource(subresource...).Param("fieldManager", manager)
	return unservedIsUnavailable(request.Body(body).Do(ctx).Error())
}

func (a restAPI) Watch(ctx context.Context, name, resourceVersion string) (watch.Interface, error) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return a.client.Get().Resource(resource).Param("watch", "true").Param("fieldSelector", selector).Param("resourceVersion", resourceVersion).
		Param("allowWatchBookmarks", "true").Watch(ctx)
}

func (a restAPI) Resources(ctx context.Context, group, version string) (*metav1.APIResourceList, error) {
	var status int
	result := a.client.Get().AbsPath("/apis", group, version).Do(ctx).StatusCode(&status)
	document, err := result.Raw()
	if err != nil {
		return nil, err
	}
	list := &metav1.APIResourceList{}
	if err := json.Unmarshal(document, list); err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("read the list of resources of %s/%s (status %d): %w", group, version, status, err)
	}
	return list, nil
}

// impossibleName is a name that no object can have. A request for it makes the API server answer without reading an object.
const impossibleName = "-"

func (a restAPI) Columns(ctx context.Context, of schema.GroupVersionResource, namespace string) ([]metav1.TableColumnDefinition, error) {
	table := &metav1.Table{}
	request := a.list(of, namespace, "Table").Param("includeObject", string(metav1.IncludeNone)).Param("limit", "1")
	request.Param("fieldSelector", fields.OneTermEqualSelector(metav1.ObjectNameField, impossibleName).String())
	err := read(ctx, request, table)
	return table.ColumnDefinitions, err
}

func (a restAPI) Count(ctx context.Context, of schema.GroupVersionResource) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	if err := read(ctx, a.list(of, metav1.NamespaceAll, "PartialObjectMetadataList").Param("limit", "1"), list); err != nil {
		return 0, err
	}
	return len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0)), nil
}

// list requests custom resources in a representation of package meta.
func (a restAPI) list(of schema.GroupVersionResource, namespace, as string) *rest.Request {
	path := []string{"/apis", of.Group, of.Version}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return a.client.Get().AbsPath(append(path, of.Resource)...).SetHeader("Accept", "application/json;as="+as+";v=v1;g=meta.k8s.io")
}

func read(ctx context.Context, request *rest.Request, into any) error {
	// The API server answers 429 for a new kind until its cache is filled. The caller retries, and sooner than the client would.
	document, err := request.MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(document, into); err != nil {
		return fmt.Errorf("read %s: %w", request.URL(), err)
	}
	return nil
}
