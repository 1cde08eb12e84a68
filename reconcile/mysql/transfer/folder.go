package transfer

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// InstanceOf returns the instance whose folder a URL names, as LocationOf named it; false if it cannot be one. It uses only the end of the
// path, because a server and a bucket may have several names: two URLs with different names may mean the same folder. A copy of the folder
// under the same names, in another bucket, counts as the folder itself.
func InstanceOf(location string) (types.NamespacedName, bool) {
	parsed, err := url.Parse(location)
	if err != nil {
		return types.NamespacedName{}, false
	}
	parts := strings.Split(strings.Trim(path.Clean("/"+parsed.Path), "/"), "/")
	if len(parts) < 3 {
		return types.NamespacedName{}, false
	}
	slices.Reverse(parts) // NAMESPACE/CLUSTER/INSTANCE are the last three
	return types.NamespacedName{Namespace: parts[2], Name: parts[0]}, true
}
