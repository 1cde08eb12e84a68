package crds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// API is what installing needs of the API server. Errors are the API server's own (k8s.io/apimachinery/pkg/api/errors tells them apart).
type API interface {
	// Get reads a definition, live.
	Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error)
	// Apply sends a server-side apply as FieldManager. With takeOver, fields others own become ours; without, they are a conflict.
	Apply(ctx context.Context, name string, body []byte, takeOver bool) (*apiextensionsv1.CustomResourceDefinition, error)
	// Resources lists what is served under a group and version; NotFound means nothing is.
	Resources(ctx context.Context, group, version string) (*metav1.APIResourceList, error)
}

type restAPI struct {
	client rest.Interface
}

// NewAPI returns the API of the cluster the configuration leads to. The configuration is not changed.
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
	return object, err
}

func (a restAPI) Apply(ctx context.Context, name string, body []byte, takeOver bool) (*apiextensionsv1.CustomResourceDefinition, error) {
	object := &apiextensionsv1.CustomResourceDefinition{}
	request := a.client.Patch(types.ApplyPatchType).Resource(resource).Name(name)
	request.Param("fieldManager", FieldManager).Param("force", strconv.FormatBool(takeOver))
	err := request.Body(body).Do(ctx).Into(object)
	return object, err
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
