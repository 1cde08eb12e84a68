package transfer

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// InstanceOf returns the instance whose folder a URL names, as LocationOf has named it; false if it cannot be one. It goes by the end of
// the path alone, because a server has many names, and so may a bucket: two URLs that differ there may still name one folder. A copy of the
// folder under the same names, in another bucket, is taken for the folder itself.
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
