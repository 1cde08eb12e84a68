package pulsarconsumer

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// standalone reads the manifest of the Pulsar server that docs/pulsarconsumer.md uses.
func standalone(t *testing.T) (appsv1.Deployment, corev1.Service) {
	t.Helper()
	content, err := os.ReadFile("../../../deploy/pulsar-standalone.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var server appsv1.Deployment
	var service corev1.Service
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for _, into := range []any{&server, &service} {
		if err := documents.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	if err := documents.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		t.Fatalf("there is more in it than a Deployment and a Service (error %v)", err)
	}
	return server, service
}

// TestTheServerToTryReachesItself: the server's health check connects to the address that the broker advertises, the Service's name. The
// Service has no endpoint until the Pod is ready. So within the Pod, that name must resolve to the Pod itself.
func TestTheServerToTryReachesItself(t *testing.T) {
	t.Parallel()
	server, service := standalone(t)
	pod := server.Spec.Template.Spec
	command := pod.Containers[0].Command
	at := slices.Index(command, "--advertised-address") + 1
	if at == 0 || at == len(command) {
		t.Fatalf("the command %v advertises no address", command)
	}
	advertised := command[at]
	if advertised != service.Name {
		t.Errorf("it advertises %q, and the Service is called %q", advertised, service.Name)
	}
	if !slices.ContainsFunc(pod.HostAliases, func(one corev1.HostAlias) bool {
		return one.IP == "127.0.0.1" && slices.Contains(one.Hostnames, advertised)
	}) {
		t.Errorf("in its Pod %q resolves to the Service, which has no endpoint before the Pod is ready; the Pod is not ready before it reaches %q: %+v", advertised, advertised, pod.HostAliases)
	}
	if !slices.Contains(command, "-nfw") {
		t.Errorf("the command %v starts the functions worker, which is not needed here", command)
	}
}
