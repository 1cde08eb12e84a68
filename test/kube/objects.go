package kube

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/jsonpath"
)

// Objects reads objects without kubectl: tests read often while they wait, and each start of kubectl takes a third of a second of processor
// time.
type Objects struct{ client dynamic.Interface }

// Objects returns a reader of the same cluster.
func (k Kubectl) Objects() (Objects, error) {
	config, err := k.Rest()
	if err != nil {
		return Objects{}, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return Objects{}, fmt.Errorf("make a client: %w", err)
	}
	return Objects{client}, nil
}

// Field returns the output of `kubectl get NAME -o jsonpath=TEMPLATE`.
func (o Objects) Field(ctx context.Context, of schema.GroupVersionResource, namespace, name, template string) (string, error) {
	object, err := o.client.Resource(of).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return printed(object.Object, template)
}

// Fields returns the output of `kubectl get -o jsonpath=TEMPLATE` for all objects that the options select.
func (o Objects) Fields(ctx context.Context, of schema.GroupVersionResource, namespace string, options metav1.ListOptions, template string) (string, error) {
	list, err := o.client.Resource(of).Namespace(namespace).List(ctx, options)
	if err != nil {
		return "", err
	}
	return printed(list.UnstructuredContent(), template)
}

// Watch returns all objects that the options select, as they are now, and then each of their changes.
func (o Objects) Watch(ctx context.Context, of schema.GroupVersionResource, namespace string, options metav1.ListOptions) (watch.Interface, error) {
	return o.client.Resource(of).Namespace(namespace).Watch(ctx, options)
}

func printed(object map[string]any, template string) (string, error) {
	parser := jsonpath.New("field").AllowMissingKeys(true)
	if err := parser.Parse(template); err != nil {
		return "", fmt.Errorf("read jsonpath %q: %w", template, err)
	}
	var text strings.Builder
	if err := parser.Execute(&text, object); err != nil {
		return "", fmt.Errorf("print jsonpath %q: %w", template, err)
	}
	return text.String(), nil
}
