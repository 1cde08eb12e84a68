package crds

import (
	"cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// managerOf returns, for people, which tool manages a definition: common tools leave marks.
func managerOf(object *apiextensionsv1.CustomResourceDefinition) string {
	labels, annotations := object.Labels, object.Annotations
	switch {
	case annotations["meta.helm.sh/release-name"] != "":
		return "Helm release " + annotations["meta.helm.sh/release-namespace"] + "/" + annotations["meta.helm.sh/release-name"]
	case labels["olm.managed"] == "true":
		return "Operator Lifecycle Manager"
	case cmp.Or(annotations["argocd.argoproj.io/tracking-id"], labels["argocd.argoproj.io/instance"]) != "":
		return "Argo CD"
	case labels["kustomize.toolkit.fluxcd.io/name"] != "":
		return "Flux " + labels["kustomize.toolkit.fluxcd.io/namespace"] + "/" + labels["kustomize.toolkit.fluxcd.io/name"]
	default:
		return cmp.Or(labels[OwnerLabel], "an unknown manager")
	}
}
