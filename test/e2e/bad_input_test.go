package e2e

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestBadImagesAndSettings: the Ready condition reports problems that only show when Pods start. A user fixes them in the spec alone.
func TestBadImagesAndSettings(t *testing.T) {
	t.Parallel()
	stories := []struct {
		name string
		bad  []string
		says string
	}{
		{"an image that does not exist", []string{"replicas: 1", "image: mysql:no-such-tag"}, "False ImagePullFailed spec.image mysql:no-such-tag cannot be pulled"},
		{"an image without mysqld", []string{"replicas: 1", "image: mysql-operator:latest"}, "False ImageUnusable spec.image mysql-operator:latest cannot run mysqld"},
		{"a setting that mysqld does not know", []string{"replicas: 1", `config: {no_such_setting: "1"}`}, "False SettingsRefused mysqld of "},
	}
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.mustApply(secret(p.password))
			p.mustApply(p.manifest(story.bad...))
			p.waitReady(story.says, changeLimit)
			p.mustApply(p.manifest("replicas: 1"))
			p.settled(1)
		})
	}
}

// TestChangesToARunningCluster: settings roll the members, volumes grow, and clients lose nothing.
func TestChangesToARunningCluster(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(2)
	w := p.startWriter()
	t.Log("another setting and a larger volume")
	p.mustApply(p.manifest("replicas: 2", `storage: "2Gi"`, `config: {max_connections: "222"}`))
	p.settled(2)
	write := p.open(p.cluster, p.password)
	p.waitValue(write, "SELECT @@GLOBAL.max_connections", "222", changeLimit)
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT @@GLOBAL.max_connections", "222", changeLimit)
	p.settled(2)
	p.wait("both claims to ask for 2Gi", changeLimit, func(ctx context.Context) (bool, string) {
		sizes, err := p.objects.Fields(ctx, core("persistentvolumeclaims"), p.namespace, metav1.ListOptions{}, "{.items[*].spec.resources.requests.storage}")
		return err == nil && sizes == "2Gi 2Gi", sizes
	})
	if err := p.apply(p.manifest("replicas: 2", `storage: "1Gi"`)); err == nil {
		t.Error("a volume cannot shrink, and kubectl apply has to say so")
	}
	p.goesOn(w)

	t.Log("the replica's volume is lost")
	p.run("delete", "pvc", "data-"+p.cluster+"-1", "-n", p.namespace, "--wait=false")
	p.deletePod(p.cluster + "-1")
	p.settled(2)
	p.goesOn(w)
	w.end()
	p.nothingLost(w, write)
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT COUNT(*) = (SELECT COUNT(*) FROM test.numbers) FROM test.numbers", "1", answerLimit)
}

// TestLongestNameAndLowPort: what is at the edge of the schema works.
func TestLongestNameAndLowPort(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	p := newPlace(t)
	p.cluster = (p.cluster + "-a-name-of-forty-characters-and-no-more")[:40]
	p.start(1, "port: 88")
	p.waitValue(p.open(p.cluster, p.password), "SELECT @@GLOBAL.port", "88", answerLimit)
}
