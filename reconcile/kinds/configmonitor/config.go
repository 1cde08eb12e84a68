package configmonitor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// config is a ConfigMap in its current state.
type config struct {
	name  string
	found bool
	// hash is the sha256 of its data, in hexadecimal; version its metadata.resourceVersion.
	hash, version string
}

// hashField is the field of a cached ConfigMap with the hash instead of its data. No ConfigMap of the API has such a field.
const hashField = "dataHash"

// keepHash is the transform of the ConfigMaps' cache: it replaces the data with its hash.
func keepHash(item any) (any, error) {
	trimmed, err := reconcile.TrimChild(item)
	object, ok := trimmed.(*unstructured.Unstructured)
	if err != nil || !ok {
		return trimmed, err
	}
	hash, err := dataHash(object)
	if err != nil {
		return nil, err
	}
	object.SetAnnotations(nil)
	object.SetManagedFields(nil)
	for _, field := range []string{"data", "binaryData", "immutable"} {
		delete(object.Object, field)
	}
	object.Object[hashField] = hash
	return object, nil
}

// configFrom reads a ConfigMap from the cache or from the API server.
func configFrom(object *unstructured.Unstructured) (config, error) {
	hash, err := dataHash(object)
	if err != nil {
		return config{}, err
	}
	return config{name: object.GetName(), found: true, hash: hash, version: object.GetResourceVersion()}, nil
}

// dataHash returns the sha256 of a ConfigMap's data and binaryData, in hexadecimal. An object from the cache has the hash; for others it is
// computed. Equal data has an equal hash in any order of keys. No data is the same as empty data.
func dataHash(object *unstructured.Unstructured) (string, error) {
	if hash, ok := object.Object[hashField].(string); ok {
		return hash, nil
	}
	var content struct {
		Data       map[string]string `json:"data,omitempty"`
		BinaryData map[string][]byte `json:"binaryData,omitempty"`
	}
	if err := schema.Decode(object, &content); err != nil {
		return "", err
	}
	document, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("hash ConfigMap %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return digest(document), nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// stampPrefix is the prefix of the annotation on a restarted workload's Pod template. The ConfigMap's name follows; the value is the hash
// of its data. Each ConfigMap has a separate annotation. All monitors of a ConfigMap set the same one: together they restart once.
const stampPrefix = schema.MagalixGroup + "/config-"

// stampKey returns the annotation for a ConfigMap.
func stampKey(configName string) string {
	return stampPrefix + shortened(configName, maxKeyName-len("config-"))
}

// stampManager returns the field manager of a ConfigMap's annotation. Each ConfigMap has its own, because a server-side apply removes the
// fields that its field manager set earlier and does not set now.
func stampManager(configName string) string {
	return reconcile.ManagerChildren + "-config-" + shortened(configName, maxKeyName)
}

// The limits of an annotation's name without its prefix (Kubernetes documentation, "Annotations"), and of the hash at the end of a
// shortened name. The first is also well below the 128 characters of a field manager.
const (
	maxKeyName = 63
	nameDigest = 10
)

// shortened returns the name if it has at most limit characters. If not, it returns the beginning and a hash of the whole name.
func shortened(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	beginning := strings.TrimRight(name[:limit-nameDigest-1], ".-")
	return beginning + "-" + digest([]byte(name))[:nameDigest]
}
