package main

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// exec runs a command in the operator's container of a Pod, as kubectl exec does, and returns its output.
func (c connection) exec(ctx context.Context, pod unstructured.Unstructured, command []string) ([]byte, error) {
	known := runtime.NewScheme()
	if err := corev1.AddToScheme(known); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.rest)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	request := client.Post().Resource("pods").Namespace(pod.GetNamespace()).Name(pod.GetName()).SubResource("exec")
	request.VersionedParams(&corev1.PodExecOptions{Container: operatorName, Stdout: true, Stderr: true, Command: command}, runtime.NewParameterCodec(known))
	executor, err := executorOf(config, request)
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &said}); err != nil {
		return nil, fmt.Errorf("run %s in Pod %s/%s: %w: %s", command[0], pod.GetNamespace(), pod.GetName(), err, bytes.TrimSpace(said.Bytes()))
	}
	return out.Bytes(), nil
}

// executorOf uses WebSockets, or SPDY if the API server, or a proxy before it, does not support these.
func executorOf(config *rest.Config, request *rest.Request) (remotecommand.Executor, error) {
	executor, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	if err != nil {
		return nil, err
	}
	older, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(executor, older, httpstream.IsUpgradeFailure)
}
