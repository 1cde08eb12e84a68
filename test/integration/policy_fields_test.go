package integration

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// attack is one request of an attacker who has the operator's token, and what the refusal must say.
type attack struct {
	try func(context.Context, *testing.T) error
	why string
}

// isRefused fails the test unless a policy, and nothing else, refuses the request.
func (a attack) isRefused(t *testing.T) {
	t.Helper()
	err := a.try(t.Context(), t)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'mysql-operator-") || !strings.Contains(err.Error(), a.why) {
		t.Errorf("the answer is %v, want a refusal by a policy that says %q", err, a.why)
	}
}

// replaced is a document with one of its parts exchanged.
func replaced(t *testing.T, document, from, to string) string {
	t.Helper()
	changed := strings.Replace(document, from, to, 1)
	if changed == document {
		t.Fatalf("nothing says %q in %q", from, document)
	}
	return changed
}

// set is a StatefulSet that the policies allow.
const set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: evil, " + ours + "}, spec: {serviceName: evil-pods, " +
	"selector: {matchLabels: {app.kubernetes.io/managed-by: mysql-operator}}, template: {metadata: {" + ours + "}, spec: {automountServiceAccountToken: false, " +
	"securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, " +
	"containers: [{name: c, image: none, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}, " +
	"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}"

// claim is a PersistentVolumeClaim that the policies allow, but for what a test adds to its metadata and its spec.
func claim(metadata, spec string) string {
	return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: evil, " + ours + metadata + "}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}" + spec + "}}"
}

// property makes what the operator has made here.
func (f thief) property(t *testing.T) {
	t.Helper()
	f.make(t, "persistentvolumeclaims", replaced(t, claim("", ""), "evil", "data-db-0"))
	f.make(t, "pods", "{apiVersion: v1, kind: Pod, metadata: {name: db-0, "+ours+"}, spec: {containers: [{name: c, image: none}]}}")
	f.make(t, "serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: db, "+ours+"}}")
	controlled := ours + ", ownerReferences: [{apiVersion: cr.mysqloperator.grtl.github.com/v1, kind: MySQLCluster, name: db, controller: true, " +
		"uid: " + string(f.uid(t, "mysqlclusters", "db")) + "}]"
	f.make(t, "secrets", "{apiVersion: v1, kind: Secret, metadata: {name: db-tls, "+controlled+"}}")
	f.make(t, "services", "{apiVersion: v1, kind: Service, metadata: {name: db, "+controlled+"}, spec: {"+selectsOurs+", ports: [{port: 80}]}}")
	f.make(t, "statefulsets", replaced(t, set, "evil", "db")) // the last one: Kubernetes would make the claim and the Pod for it
}

// selectsOurs is the selector of a Service that the policies allow.
const selectsOurs = "selector: {app.kubernetes.io/managed-by: mysql-operator}"

// uid is that of an object that is there.
func (f thief) uid(t *testing.T, what, name string) types.UID {
	t.Helper()
	found, err := f.of(what).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.GetUID()
}

// onPods are requests for Pods that differ from an allowed one in one field.
func (f thief) onPods(t *testing.T) map[string]attack {
	t.Helper()
	adds := func(field, why string) attack {
		return attack{f.creates(f.namespace, "jobs", job(restrictedPod+", "+field)), why}
	}
	inContainer := func(field string) attack {
		return attack{f.creates(f.namespace, "jobs", job(replaced(t, restrictedPod, "image: none,", "image: none, "+field+","))), "own addresses"}
	}
	labelled := func(metadata, why string) attack {
		return attack{f.creates(f.namespace, "jobs", replaced(t, job(restrictedPod), "{template: {", "{template: {metadata: {"+metadata+"}, ")), why}
	}
	const away = "{host: 169.254.169.254, port: 80}"
	return map[string]attack{
		"kubelet's requests to another host":  inContainer("livenessProbe: {httpGet: " + away + "}"),
		"the same to be ready":                inContainer("readinessProbe: {httpGet: " + away + "}"),
		"the same to have started":            inContainer("startupProbe: {httpGet: " + away + "}"),
		"kubelet's connections elsewhere":     inContainer("livenessProbe: {tcpSocket: " + away + "}"),
		"a request after the start":           inContainer("lifecycle: {postStart: {httpGet: " + away + "}}"),
		"a request before the end":            inContainer("lifecycle: {preStop: {httpGet: " + away + "}}"),
		"a connection before the end":         inContainer("lifecycle: {preStop: {tcpSocket: " + away + "}}"),
		"an init container's probe":           adds("initContainers: [{name: i, image: none, restartPolicy: Always, startupProbe: {httpGet: "+away+"}}]", "own addresses"),
		"a node of its choice":                adds("nodeName: control-plane", "no node"),
		"a node by its labels":                adds("nodeSelector: {node-role.kubernetes.io/control-plane: \"\"}", "no node"),
		"a node that it would rather have":    adds("affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}", "no node"),
		"the node of a user's Pod":            adds("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: shop}}}]}}", "no node"),
		"another scheduler":                   adds("schedulerName: theirs", "no node"),
		"the name of a Service elsewhere":     adds("hostname: postgres, subdomain: prod", "no host names"),
		"its host's name alone":               adds("hostname: postgres", "no host names"),
		"the name of its domain alone":        adds("subdomain: prod", "no host names"),
		"a host's name with its domain":       adds("setHostnameAsFQDN: true", "no host names"),
		"a node that taints keep others from": adds("tolerations: [{operator: Exists}]", "no node"),
		"a place before everybody else":       adds("priorityClassName: system-cluster-critical", "no node"),
		"another container runtime":           adds("runtimeClassName: unsafe", "no node"),
		"a device":                            adds("resourceClaims: [{name: d, resourceClaimName: gpu}]", "no node"),
		"what containers at its side read":    adds("shareProcessNamespace: true", "no node"),
		"a node for itself":                   adds("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, namespaceSelector: {}, labelSelector: {}}]}}", "no required anti-affinity"),
		"a Windows account":                   {f.creates(f.namespace, "jobs", job(replaced(t, restrictedPod, "{runAsNonRoot", "{windowsOptions: {runAsUserName: ContainerAdministrator}, runAsNonRoot"))), "access to the node"},
		"the same for a container":            {f.creates(f.namespace, "jobs", job(replaced(t, restrictedPod, "{allowPriv", "{windowsOptions: {runAsUserName: ContainerAdministrator}, allowPriv"))), "access to the node"},
		"a volume of its own making":          adds("volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]", "mount only Secrets"),
		"an image as a volume":                adds("volumes: [{name: v, image: {reference: theirs}}]", "mount only Secrets"),
		"a driver's volume":                   adds("volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io}}]", "mount only Secrets"),
		"a file server's volume":              adds("volumes: [{name: v, nfs: {server: 192.0.2.1, path: /}}]", "mount only Secrets"),
		"another tenant's clients":            labelled("labels: {app: shop}", "have only its own labels"),
		"the same by a recommended label":     labelled("labels: {app.kubernetes.io/name: shop}", "have only its own labels"),
		"a container that a webhook injects":  labelled("annotations: {sidecar.istio.io/proxyImage: evil}", "no annotations"),
		"a profile by the former annotation":  labelled("annotations: {container.apparmor.security.beta.kubernetes.io/c: unconfined}", "no annotations"),
		"a user's Pods, to end them":          {f.creates(f.namespace, "jobs", replaced(t, replaced(t, job(restrictedPod), "spec: {", "spec: {manualSelector: true, selector: {matchLabels: {app.kubernetes.io/name: mysql}}, "), "template: {", "template: {metadata: {labels: {app.kubernetes.io/name: mysql}}, ")), "adopt no Pods"},
	}
}

// onWhatIsItsOwn are requests about objects that the operator made, or that have its mark: it may have them, but they must do no harm.
func (f thief) onWhatIsItsOwn(t *testing.T) map[string]attack {
	t.Helper()
	here := f.namespace
	const gone = `[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]`
	claims := func(metadata, spec, why string) attack {
		return attack{f.creates(here, "persistentvolumeclaims", claim(metadata, spec)), why}
	}
	sets := func(from, to, why string) attack {
		return attack{f.creates(here, "statefulsets", replaced(t, set, from, to)), why}
	}
	service := func(rest string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: evil, " + ours + "}, spec: {" + rest + ", ports: [{port: 80}]}}"
	}
	return map[string]attack{
		"a cluster's volume, by garbage collection": {f.patches(here, "persistentvolumeclaims", "data-db-0", `{"metadata":{"ownerReferences":`+gone+`}}`), "no owners"},
		"a cluster's certificates, in the same way": {f.patches(here, "secrets", "db-tls", `{"metadata":{"ownerReferences":`+gone+`}}`), "no owners"},
		"a cluster's Service, in the same way":      {f.patches(here, "services", "db", `{"metadata":{"ownerReferences":`+gone+`}}`), "no owners"},
		"a cluster's Service, let go":               {f.patches(here, "services", "db", `{"metadata":{"ownerReferences":null}}`), "no owners"},
		"a cluster's CAs, in the same way":          {f.patches(f.home, "secrets", authorityOfDB, `{"metadata":{"ownerReferences":`+gone+`}}`), "no owners"},
		"certificates for everybody":                {f.patches(here, "secrets", "db-tls", `{"metadata":{"annotations":{"reflector.v1.k8s.emberstack.com/reflection-allowed":"true"}}}`), "no annotations"},
		"a claim that goes with something":          claims(", ownerReferences: "+gone, "", "no owners"),
		"a user's volume":                           claims("", ", volumeName: theirs", "new and empty"),
		"a copy of a user's volume":                 claims("", ", dataSource: {kind: PersistentVolumeClaim, name: data}", "new and empty"),
		"a copy of another namespace's":             claims("", ", dataSourceRef: {apiGroup: a.b, kind: Populator, name: p}", "new and empty"),
		"a volume by its labels":                    claims("", ", selector: {matchLabels: {a: b}}", "new and empty"),
		"what a driver does for an annotation":      claims(", annotations: {cdi.kubevirt.io/storage.import.endpoint: evil}", "", "no annotations"),
		"a name in the world's DNS":                 {f.creates(here, "services", replaced(t, service("clusterIP: None, "+selectsOurs), "evil,", "evil, annotations: {external-dns.alpha.kubernetes.io/hostname: shop.example},")), "no annotations"},
		"a Service for a user's Pods":               {f.creates(here, "services", service("selector: {app: shop}")), "select only its own Pods"},
		"a Service for addresses of its own":        {f.creates(here, "services", service("clusterIP: None")), "select only its own Pods"},
		"a ConfigMap that others fill":              {f.creates(here, "configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: evil, "+ours+", annotations: {replicator.v1.mittwald.de/replicate-from: a/b}}}"), "no annotations"},
		"an account with registries' passwords":     {f.patches(here, "serviceaccounts", "db", `{"imagePullSecrets":[{"name":"theirs"}]}`), "no Secrets"},
		"a hold on everybody's nodes":               {f.creates(here, "poddisruptionbudgets", "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: evil, "+ours+"}, spec: {maxUnavailable: 0, selector: {}}}"), "select only its own Pods"},
		"a way through others' NetworkPolicies":     {f.creates(here, "networkpolicies", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: evil, "+ours+"}, spec: {podSelector: {}, ingress: [{}]}}"), "select only its own Pods"},
		"the volumes of members that go":            {f.patches(here, "statefulsets", "db", `{"spec":{"replicas":0,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}}}`), "keep their claims"},
		"the volumes of a set that goes":            {f.patches(here, "statefulsets", "db", `{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}}`), "keep their claims"},
		"members with the names of a user's":        sets("serviceName: evil-pods", "serviceName: prod", "is NAME-pods"),
		"a user's volume for a member":              sets("accessModes: [ReadWriteOnce],", "accessModes: [ReadWriteOnce], volumeName: theirs,", "new and empty"),
		"a copy for a member":                       sets("accessModes: [ReadWriteOnce],", "accessModes: [ReadWriteOnce], dataSource: {kind: PersistentVolumeClaim, name: data},", "new and empty"),
		"claims that go with something":             sets("{metadata: {name: data}", "{metadata: {name: data, ownerReferences: "+gone+"}", "new and empty"),
		"Pods that a user made by hand":             {f.creates(here, "statefulsets", strings.ReplaceAll(replaced(t, set, "evil, "+ours, "evil, labels: {by: hand, app.kubernetes.io/managed-by: mysql-operator}"), "{matchLabels: {app.kubernetes.io/managed-by: mysql-operator}}", "{matchExpressions: [{key: app.kubernetes.io/managed-by, operator: Exists}]}")), "adopt no Pods"},
		"the clients of a user, by a Pod":           {f.patches(here, "pods", "db-0", `{"metadata":{"labels":{"app":"shop"}}}`), "own labels of Pods"},
		"a Pod let go":                              {f.patches(here, "pods", "db-0", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`), "own labels of Pods"},
	}
}

// TestPolicyOnPlainPods: the Pods of TDSets have no security context and their namespace's default account. With the token of an operator
// that serves them, an attacker gets neither another account's token nor the node.
func TestPolicyOnPlainPods(t *testing.T) {
	t.Parallel()
	f := newThief(t, tdSets())
	deployment := func(pod string) func(context.Context, *testing.T) error {
		return f.creates(f.namespace, "deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: evil, "+ours+"}, spec: {"+
			"selector: {matchLabels: {app.kubernetes.io/managed-by: mysql-operator}}, template: {metadata: {"+ours+"}, spec: {containers: [{name: c, image: none}]"+pod+"}}}}")
	}
	for story, pod := range map[string]string{"as they are": "", "with the account named": ", serviceAccountName: default", "without a token": ", serviceAccountName: other, automountServiceAccountToken: false"} {
		if err := deployment(pod)(t.Context(), t); err != nil {
			t.Errorf("%s: %v", story, err)
		}
	}
	for pod, why := range map[string]string{
		", serviceAccountName: argocd-application-controller":                 "no service account token",
		", securityContext: {seccompProfile: {type: Unconfined}}":             "access to the node",
		", securityContext: {appArmorProfile: {type: Unconfined}}":            "access to the node",
		", securityContext: {sysctls: [{name: kernel.msgmax, value: \"1\"}]}": "access to the node",
		", volumes: [{name: v, hostPath: {path: /}}]":                         "mount only Secrets",
		", nodeName: control-plane":                                           "no node",
		", nodeSelector: {a: b}":                                              "no node",
		", hostname: postgres, subdomain: prod":                               "no host names",
	} {
		t.Run(pod, func(t *testing.T) {
			t.Parallel()
			attack{deployment(pod), why}.isRefused(t)
		})
	}
}
