package transfer

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const operatorImage = "registry.example/mysql-operator:1"

// as reads an apply configuration as the object that the API server would create from it.
func as[T any](t *testing.T, configuration any) T {
	t.Helper()
	content, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	var object T
	if err := json.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func aBackup(changes ...func(*BackupOrder)) BackupOrder {
	order := BackupOrder{
		Namespace: "shop", Cluster: "db", Instance: "nightly-2026-11-21-03-00-00", UID: "0a1b", Port: 3306, Image: operatorImage, Deadline: 3600,
		Location: v1.BackupLocation{URL: "file:///shop/db/nightly-2026-11-21-03-00-00", Claim: "nightly"},
	}
	for _, change := range changes {
		change(&order)
	}
	return order
}

func aRestore(changes ...func(*RestoreOrder)) RestoreOrder {
	order := RestoreOrder{
		Namespace: "shop", Cluster: "db", ClusterUID: "c1", BackupUID: "0a1b", Checksum: "sha256:12", DataClaim: "data-db-0",
		Image:           operatorImage,
		Location:        v1.BackupLocation{URL: "file:///shop/db/nightly-2026-11-21-03-00-00", Claim: "nightly"},
		ServerResources: v1.Resources{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}},
	}
	for _, change := range changes {
		change(&order)
	}
	return order
}

func aQuestion() VersionOrder {
	return VersionOrder{Namespace: "shop", Cluster: "db", ClusterUID: "c1", Image: operatorImage, ServerImage: "mysql:9.7"}
}

func aDeletion() DeleteOrder {
	return DeleteOrder{
		Namespace: "shop", Cluster: "db", Instance: "nightly-2026-11-21-03-00-00", UID: "0a1b", Image: operatorImage,
		Location: v1.BackupLocation{URL: "file:///shop/db/nightly-2026-11-21-03-00-00", Claim: "nightly", EncryptionSecret: "keys"},
	}
}

func unstructuredOf(t *testing.T, content []byte) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
