package children

import apischema "k8s.io/apimachinery/pkg/runtime/schema"

// StatefulSets is the resource of StatefulSets.
func StatefulSets() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
}

// Pods is the resource of Pods.
func Pods() apischema.GroupVersionResource { return core("pods") }

// Claims is the resource of PersistentVolumeClaims.
func Claims() apischema.GroupVersionResource { return core("persistentvolumeclaims") }

// Services is the resource of Services.
func Services() apischema.GroupVersionResource { return core("services") }

// ConfigMaps is the resource of ConfigMaps.
func ConfigMaps() apischema.GroupVersionResource { return core("configmaps") }

// Secrets is the resource of Secrets.
func Secrets() apischema.GroupVersionResource { return core("secrets") }

// ServiceAccounts is the resource of ServiceAccounts.
func ServiceAccounts() apischema.GroupVersionResource { return core("serviceaccounts") }

// PodDisruptionBudgets is the resource of PodDisruptionBudgets.
func PodDisruptionBudgets() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
}

// NetworkPolicies is the resource of NetworkPolicies.
func NetworkPolicies() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
}

func core(resource string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: resource}
}
