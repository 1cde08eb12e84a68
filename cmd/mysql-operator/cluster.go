package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mysql-operator/mysql-operator/deploy"
)

// connection is the Kubernetes cluster that a subcommand uses.
type connection struct {
	rest *rest.Config
	// namespace is the operator's own: the Pod's, or the kubeconfig's current one.
	namespace string
}

// connect finds the Kubernetes cluster: the given kubeconfig, else KUBECONFIG or ~/.kube/config, else the Pod's service account. It sends
// no request.
func connect(kubeconfig string) (connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	found, err := config.ClientConfig()
	if err != nil {
		return connection{}, fmt.Errorf("find the Kubernetes cluster: %w: name one with --kubeconfig, or run in a Pod with a service account token", err)
	}
	namespace, _, err := config.Namespace()
	if err != nil {
		return connection{}, fmt.Errorf("find the operator's namespace: %w", err)
	}
	found.UserAgent = "mysql-operator/" + programVersion()
	return connection{rest: found, namespace: namespace}, nil
}

// self is what a process reads about itself from its own Pod.
type self struct {
	// image is the image of the operator's container.
	image string
	// identity distinguishes the process from all others, also from those in other Pods of the same name. An earlier process in the same
	// Pod has the same identity. That process has certainly ended, so this one need not wait for its Lease to expire.
	identity string
	// home is the operator's namespace.
	home string
	// namespace and labels select the operator's Pods in NetworkPolicies; namespace is empty if the Pods cannot be selected.
	namespace string
	labels    map[string]string
	// alarmAddress is where the operator takes the alarms of members; empty for nowhere.
	alarmAddress string
}

// ownPod reads the Pod in which this process runs: a Pod's host name is its name.
func ownPod(ctx context.Context, c connection) (self, error) {
	name, err := os.Hostname()
	if err != nil {
		return self{}, fmt.Errorf("find the operator's Pod: %w: name the image with --agent-image", err)
	}
	client, err := v1.NewForConfig(c.rest)
	if err != nil {
		return self{}, fmt.Errorf("make a client for Pods: %w", err)
	}
	pod, err := client.Pods(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return self{}, fmt.Errorf("read the operator's image from its Pod %s/%s: %w: outside of a Pod, or with hostNetwork, name the image with --agent-image", c.namespace, name, err)
	}
	image, err := imageOf(pod)
	own := self{image: image, identity: pod.Name + "_" + string(pod.UID), home: c.namespace}
	if !pod.Spec.HostNetwork {
		own.namespace, own.labels = pod.Namespace, lastingLabels(pod.Labels)
	}
	return own, err
}

// lastingLabels returns the one label with the program's name, which later releases have as well; nil if there is none.
func lastingLabels(labels map[string]string) map[string]string {
	for _, name := range []string{"app.kubernetes.io/name", "k8s-app", "app", "run"} {
		if value, found := labels[name]; found {
			return map[string]string{name: value}
		}
	}
	return nil
}

// imageOf returns the image of the operator's container: the Pod's only container, or the one with the operator's name.
func imageOf(pod *corev1.Pod) (string, error) {
	containers := pod.Spec.Containers
	if len(containers) == 1 {
		return containers[0].Image, nil
	}
	for _, container := range containers {
		if container.Name == deploy.Name {
			return container.Image, nil
		}
	}
	return "", fmt.Errorf("find the operator's container in Pod %s: it has %d and none is called %s: name the image with --agent-image", pod.Name, len(containers), deploy.Name)
}
