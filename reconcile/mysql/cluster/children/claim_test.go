package children

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// The StatefulSet controller takes over a claim that is the same as its own would be. With any other, it would ignore it or create another
// one.
func TestTheFirstClaimIsAsTheStatefulSetWouldMakeIt(t *testing.T) {
	t.Parallel()
	class := "fast"
	cluster := aCluster(2, func(c *v1.MySQLCluster) {
		c.Spec.Storage, c.Spec.StorageClassName = resource.MustParse("5Gi"), &class
	})
	made := as[corev1.PersistentVolumeClaim](t, FirstClaim(NamesOf(cluster), cluster))
	set := StatefulSet(NamesOf(cluster), cluster, StatefulSetInput{AgentImage: "operator:1", Scale: 2, ClaimSize: WantedStorage(cluster)})
	template := as[corev1.PersistentVolumeClaim](t, set.Spec.VolumeClaimTemplates[0])
	if made.Name != template.Name+"-db-0" || made.Namespace != "shop" || len(made.OwnerReferences) != 0 {
		t.Errorf("the claim is %s/%s, owned by %v", made.Namespace, made.Name, made.OwnerReferences)
	}
	made.Name, made.Namespace = template.Name, template.Namespace
	if diff := cmp.Diff(template, made); diff != "" {
		t.Error(diff)
	}
}
