package restore

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// aCluster returns db in namespace shop, as the API server defaults it.
func aCluster(replicas int32, change ...func(*v1.MySQLCluster)) v1.MySQLCluster {
	cluster := v1.MySQLCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db-uid", Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(1000, 0))},
		Spec: v1.MySQLClusterSpec{
			Secret: "db-secret", Port: 3306, Replicas: &replicas, Storage: resource.MustParse("1Gi"), Image: "mysql:latest",
			Durability: v1.Durability{WhenReplicasLost: v1.Continue, GracePeriodSeconds: 10},
		},
	}
	for _, apply := range change {
		apply(&cluster)
	}
	return cluster
}

// as converts an apply configuration, or anything else that JSON can encode, to another type.
func as[T any](t *testing.T, from any) T {
	t.Helper()
	content, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	var into T
	if err := json.Unmarshal(content, &into); err != nil {
		t.Fatal(err)
	}
	return into
}
