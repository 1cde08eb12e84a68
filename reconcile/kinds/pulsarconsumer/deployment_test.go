package pulsarconsumer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/pulsar/v1"
)

const ownImage = "registry.example/mysql-operator:1"

func render(t *testing.T, consumer v1.PulsarConsumer) appsv1.Deployment {
	t.Helper()
	return renderBy(t, consumer, ownImage)
}

// renderBy returns the Deployment that an operator with this image creates.
func renderBy(t *testing.T, consumer v1.PulsarConsumer, image string) appsv1.Deployment {
	t.Helper()
	content, err := schema.Encode(deployment(consumer, image))
	if err != nil {
		t.Fatal(err)
	}
	var rendered appsv1.Deployment
	if err := schema.Decode(&unstructured.Unstructured{Object: content}, &rendered); err != nil {
		t.Fatal(err)
	}
	return rendered
}

// environment returns a container's environment; a variable from a field has the value "field PATH".
func environment(container corev1.Container) map[string]string {
	variables := map[string]string{}
	for _, variable := range container.Env {
		variables[variable.Name] = variable.Value
		if variable.ValueFrom != nil {
			variables[variable.Name] = "field " + variable.ValueFrom.FieldRef.FieldPath
		}
	}
	return variables
}

func TestDeploymentOfTheFoundingDocument(t *testing.T) {
	t.Parallel()
	made := render(t, aConsumer())
	if made.Name != "orders-deployment" || made.Namespace != "shop" || *made.Spec.Replicas != 3 {
		t.Errorf("it is %s/%s with %d replicas", made.Namespace, made.Name, *made.Spec.Replicas)
	}
	container := made.Spec.Template.Spec.Containers[0]
	want := map[string]string{
		"PULSAR_SERVER": "pulsar://localhost:6650", "PULSAR_TOPIC": "my-topic", "PULSAR_SUBSCRIPTION_NAME": "my-subscription",
		"PULSAR_CONSUMER_NAME": "field metadata.name",
	}
	if diff := cmp.Diff(want, environment(container)); diff != "" {
		t.Errorf("unexpected environment (-want +got):\n%s", diff)
	}
	if container.Image != ownImage || strings.Join(container.Args, " ") != "consume" || container.ReadinessProbe == nil {
		t.Errorf("it runs %s %v with probe %v", container.Image, container.Args, container.ReadinessProbe)
	}
	if limit := container.Resources.Limits.Memory().String(); limit != "256Mi" {
		t.Errorf("it may use %s", limit)
	}
	if diff := cmp.Diff(made.Spec.Selector.MatchLabels, made.Spec.Template.Labels); diff != "" {
		t.Errorf("the Pods are not those selected:\n%s", diff)
	}
	if len(made.Spec.Template.Spec.Volumes) != 0 {
		t.Errorf("volumes %v", made.Spec.Template.Spec.Volumes)
	}
}

func TestImageOfTheUsers(t *testing.T) {
	t.Parallel()
	container := render(t, aConsumer(withImage("mine:1"))).Spec.Template.Spec.Containers[0]
	if container.Image != "mine:1" || len(container.Args) != 0 || container.ReadinessProbe != nil || len(container.Resources.Limits) != 0 || container.SecurityContext.ReadOnlyRootFilesystem != nil {
		t.Errorf("the Deployment makes assumptions about an unknown image: %+v", container)
	}
	if environment(container)["PULSAR_TOPIC"] != "my-topic" {
		t.Errorf("the environment is %v", environment(container))
	}
}

// TestTheOperatorsImagePinned: the operator recognizes its image by the last part of the name, so a pinned image is still recognized in
// another registry.
func TestTheOperatorsImagePinned(t *testing.T) {
	t.Parallel()
	own, digest := "registry.example:5000/db/mysql-operator", "@sha256:"+strings.Repeat("0", 64)
	for _, operators := range []string{own + ":1", own + digest, "mysql-operator", "registry.b/mysql-operator:latest"} {
		for image, is := range map[string]bool{
			own + ":1": true, own + ":0.9": true, own + digest: true, own + ":1" + digest: true, own: true,
			"registry.a/x/mysql-operator:v1": true, "registry.b/mysql-operator" + digest: true, "registry.b:6000/mysql-operator": true, "mysql-operator:1": true,
			own + "-mine:1": false, "mine-mysql-operator:1": false, "registry.example:5000/mysql-operator/mine:1": false, "mysql-operator.example/mine": false,
			"mine:mysql-operator": false, "mysql-operator:5000/mine": false,
		} {
			container := renderBy(t, aConsumer(withImage(image)), operators).Spec.Template.Spec.Containers[0]
			if container.Image != image || (strings.Join(container.Args, " ") == "consume") != is || (container.ReadinessProbe != nil) != is {
				t.Errorf("with the operator's image %s, %s runs %s %v with probe %v", operators, image, container.Image, container.Args, container.ReadinessProbe)
			}
		}
	}
}

func TestCredentialsAreFiles(t *testing.T) {
	t.Parallel()
	made := render(t, aConsumer(func(c *v1.PulsarConsumer) { c.Spec.Secret = "keys" })).Spec.Template.Spec
	volume, container := made.Volumes[0], made.Containers[0]
	if volume.Secret.SecretName != "keys" || !*volume.Secret.Optional || *volume.Secret.DefaultMode != 0o440 {
		t.Errorf("the volume is %+v", volume.Secret)
	}
	if container.VolumeMounts[0].MountPath != "/etc/pulsar-credentials" || !container.VolumeMounts[0].ReadOnly || environment(container)["PULSAR_CREDENTIALS"] != "/etc/pulsar-credentials" {
		t.Errorf("the mount is %+v, the environment %v", container.VolumeMounts, environment(container))
	}
}

func TestValuesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	made := render(t, aConsumer(func(c *v1.PulsarConsumer) { c.Spec.Topic = "$(PULSAR_SERVER)$$a$" })).Spec.Template.Spec.Containers[0]
	if got := environment(made)["PULSAR_TOPIC"]; got != "$$(PULSAR_SERVER)$$$$a$$" {
		t.Errorf("the topic is written %q: Kubernetes would replace what is in it", got)
	}
}

func TestLabelsOfTheResourceDoNotMatter(t *testing.T) {
	t.Parallel()
	bare := render(t, aConsumer())
	labelled := render(t, aConsumer(func(c *v1.PulsarConsumer) {
		c.Labels = map[string]string{"app.kubernetes.io/instance": "argo", "team": "a"}
	}))
	if diff := cmp.Diff(bare, labelled); diff != "" {
		t.Errorf("a label of the resource rolls its Pods:\n%s", diff)
	}
}

func TestConsumersPassPodSecurityRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for story, consumer := range map[string]v1.PulsarConsumer{
		"the operator's image": aConsumer(),
		"an image of a user":   aConsumer(withImage("mine")),
		"with a Secret":        aConsumer(func(c *v1.PulsarConsumer) { c.Spec.Secret = "keys" }),
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			template := render(t, consumer).Spec.Template
			level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec))
			if !result.Allowed {
				t.Errorf("%s: %s", result.ForbiddenReason(), result.ForbiddenDetail())
			}
			if *template.Spec.AutomountServiceAccountToken {
				t.Error("it has a token of Kubernetes")
			}
		})
	}
}
