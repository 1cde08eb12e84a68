package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	// operatorNamespace is where the bench starts one if none runs, as in the README.
	operatorNamespace = "default"
	operatorLimit     = 3 * time.Minute
	removeLimit       = 4 * time.Minute
	rootSecret        = "root"
)

// bench is the cluster with an operator, and a namespace to work in.
type bench struct {
	options   options
	kubectl   kube.Kubectl
	api       dynamic.Interface
	kind      schema.Kind
	namespace string
	// operator is the user name by which the audit log knows the operator.
	operator string
}

func setUp(ctx context.Context, o options, out io.Writer) (*bench, error) {
	kubectl, err := kube.FromEnvironment()
	if err != nil {
		return nil, err
	}
	config, err := kubectl.Rest()
	if err != nil {
		return nil, err
	}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	kinds, err := schema.Select([]string{"MySQLCluster"})
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, kubectl: kubectl, api: api, kind: kinds[0], namespace: "bench-" + strings.ToLower(rand.Text()[:6])}
	starting, cancel := context.WithTimeout(ctx, operatorLimit)
	defer cancel()
	namespace, err := kube.EnsureOperator(starting, kubectl, kube.OperatorFromEnvironment(operatorNamespace), o.keepOperator, out)
	if err != nil {
		return nil, err
	}
	b.operator = user(namespace)
	if _, err := kubectl.Run(ctx, "create", "namespace", b.namespace); err != nil {
		return nil, err
	}
	_, err = kubectl.Run(ctx, "create", "secret", "generic", rootSecret, "--namespace", b.namespace, "--from-literal=password=bench-Passw0rd")
	if err != nil {
		return nil, errors.Join(err, b.tearDown(context.WithoutCancel(ctx)))
	}
	return b, nil
}

func user(namespace string) string { return "system:serviceaccount:" + namespace + ":" + kube.Account }

// remove deletes a round's cluster with its data, and returns when nothing of it uses the machine any more.
func (b *bench) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	if _, err := b.kubectl.Run(ctx, "delete", b.kind.Plural, name, "--namespace", b.namespace, "--wait", "--ignore-not-found"); err != nil {
		return err
	}
	selector := "app.kubernetes.io/instance=" + name
	if err := b.awaitNone(ctx, core("pods"), "Pods of "+name, metav1.ListOptions{LabelSelector: selector}); err != nil {
		return err
	}
	if _, err := b.kubectl.Run(ctx, "delete", "persistentvolumeclaims", "--namespace", b.namespace, "--selector", selector, "--wait"); err != nil {
		return err
	}
	return b.awaitNoVolumes(ctx)
}

// awaitNone waits until none of the namespace's objects is left.
func (b *bench) awaitNone(ctx context.Context, resource apischema.GroupVersionResource, what string, options metav1.ListOptions) error {
	return kube.Wait(ctx, what+" to be gone", removeLimit, func(ctx context.Context) (bool, string) {
		list, err := b.api.Resource(resource).Namespace(b.namespace).List(ctx, options)
		if err != nil {
			return false, err.Error()
		}
		return len(list.Items) == 0, fmt.Sprintf("%d are left", len(list.Items))
	})
}

// awaitNoVolumes waits until no volume of the namespace is left: no user needs the benchmark's data.
func (b *bench) awaitNoVolumes(ctx context.Context) error {
	return kube.Wait(ctx, "the volumes to be gone", removeLimit, func(ctx context.Context) (bool, string) {
		list, err := b.api.Resource(core("persistentvolumes")).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		left := 0
		for i := range list.Items {
			var volume corev1.PersistentVolume
			if err := schema.Decode(&list.Items[i], &volume); err != nil {
				return false, err.Error()
			}
			if volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Namespace == b.namespace {
				left++
			}
		}
		return left == 0, fmt.Sprintf("%d are left", left)
	})
}

// tearDown removes the namespace with everything in it. The operator stays, as after make demo.
func (b *bench) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	if _, err := b.kubectl.Run(ctx, "delete", "namespace", b.namespace, "--wait", "--ignore-not-found"); err != nil {
		return err
	}
	return b.awaitNoVolumes(ctx)
}

func core(resource string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: resource}
}
