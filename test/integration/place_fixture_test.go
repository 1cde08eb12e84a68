package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
	"github.com/mysql-operator/mysql-operator/test/integration/internal/apiserver"
)

// place is a namespace in which kinds of the MySQL group are served.
type place struct {
	*apiserver.Server
	namespace string
	// account is the name of the operator's service account there.
	account string
	// home is the operator's own namespace, where it keeps the CAs of clusters.
	home string
}

// homePrefix begins the name of every operator's own namespace.
const homePrefix = "home-"

// settle makes the operator's own namespace, with the rights that the manifests grant it there.
func (p *place) settle(t *testing.T, controllers ...reconcile.Controller) {
	t.Helper()
	p.home = homePrefix + p.namespace
	namespaces := p.Dynamic.Resource(coreResource("namespaces"))
	if _, err := namespaces.Create(t.Context(), object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+p.home+"}}"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespaces.Delete(context.WithoutCancel(t.Context()), p.home, metav1.DeleteOptions{}) })
	rules := []rbacv1.PolicyRule{}
	for _, one := range controllers {
		rules = append(rules, one.OwnRules...)
	}
	p.grantIn(t, p.home, rules)
}

// namespacePatience bounds how long kube-controller-manager takes for a namespace, while it also ends those of the tests that are over: on
// a busy machine it began after four minutes once.
const namespacePatience = 15 * time.Minute

// emptied deletes the namespace, and waits until Kubernetes has removed everything in it. The namespace itself goes when Kubernetes looks
// again, once half of its Pods' longest grace period is over: no test waits for that.
func (p *place) emptied(t *testing.T) {
	t.Helper()
	namespaces := p.Dynamic.Resource(coreResource("namespaces"))
	if err := namespaces.Delete(t.Context(), p.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	soonWithin(t, namespacePatience, func(ctx context.Context) string {
		found, err := namespaces.Get(ctx, p.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		var namespace corev1.Namespace
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &namespace)
		}
		if err != nil {
			return err.Error()
		}
		for _, remains := range []corev1.NamespaceConditionType{corev1.NamespaceContentRemaining, corev1.NamespaceFinalizersRemaining} {
			if !slices.ContainsFunc(namespace.Status.Conditions, func(one corev1.NamespaceCondition) bool {
				return one.Type == remains && one.Status == corev1.ConditionFalse
			}) {
				return fmt.Sprintf("namespace %s is not empty: %v", p.namespace, namespace.Status)
			}
		}
		return ""
	})
}

// newPlace makes a namespace on a control plane, which is taught the kinds.
func newPlace(t *testing.T, server *apiserver.Server, kinds ...schema.Kind) *place {
	t.Helper()
	define(t, server, kinds...)
	p := &place{Server: server, namespace: server.Namespace(t), account: accountFor(kinds)}
	p.hold(t)
	return p
}

// define registers the definitions of kinds.
func define(t *testing.T, server *apiserver.Server, kinds ...schema.Kind) {
	t.Helper()
	defined, err := definitions.Load(kinds)
	if err != nil {
		t.Fatal(err)
	}
	api, err := crds.NewAPI(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (crds.Installer{API: api, Log: logr.Discard()}).Ensure(t.Context(), defined); err != nil {
		t.Fatal(err)
	}
}

// rulesOf are what the manifests grant an operator for kinds in a namespace.
func rulesOf(controllers ...reconcile.Controller) []rbacv1.PolicyRule {
	rules := reconcile.LeaseRules()
	for _, one := range controllers {
		rules = append(rules, reconcile.Rules(one)...)
	}
	return rules
}

// childResource finds a resource that these tests use.
func childResource(name string) apischema.GroupVersionResource {
	if strings.HasPrefix(name, "mysql") {
		return mysqlKind("", name).GVR()
	}
	switch name {
	case "poddisruptionbudgets":
		return budgets()
	case "networkpolicies":
		return apischema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: name}
	case "deployments", "replicasets":
		return appsResource(name)
	case "horizontalpodautoscalers":
		return apischema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: name}
	case "tdsets":
		return tdSets().GVR()
	case "jobs":
		return apischema.GroupVersionResource{Group: "batch", Version: "v1", Resource: name}
	case "clusterroles", "clusterrolebindings":
		return apischema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: name}
	case "storageclasses":
		return apischema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: name}
	}
	return resource(name)
}

// mysqlKind is a kind of the MySQL group, wherever the table has it.
func mysqlKind(kind, plural string) schema.Kind {
	return schema.Kind{Group: schema.MySQLGroup, Version: "v1", Kind: kind, Plural: plural, Default: true}
}

// operatorUser is the user that the API server takes the operator for. That user may do what was granted, and nothing else.
func (p *place) operatorUser() string {
	return "system:serviceaccount:" + p.namespace + ":" + p.account
}

// grant makes these rules, and no others, the operator's.
func (p *place) grant(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	p.grantIn(t, p.namespace, rules)
}

func (p *place) grantIn(t *testing.T, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	role := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: operator}}")
	content := []any{}
	for _, rule := range rules {
		encoded, err := schema.Encode(rule)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, encoded)
	}
	role.Object["rules"] = content
	binding := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: operator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}}")
	binding.Object["subjects"] = []any{map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": p.operatorUser()}}
	for what, made := range map[string]*unstructured.Unstructured{"roles": role, "rolebindings": binding} {
		if _, err := p.Dynamic.Resource(childResource(what)).Namespace(namespace).Apply(t.Context(), made.GetName(), made, metav1.ApplyOptions{FieldManager: "administrator", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// of is a client of one of the namespace's resources.
func (p *place) of(what string) dynamic.ResourceInterface {
	return p.Dynamic.Resource(childResource(what)).Namespace(p.namespace)
}

func (p *place) get(t *testing.T, what, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := p.of(what).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// secret reads a Secret.
func (p *place) secret(ctx context.Context, name string) (corev1.Secret, error) {
	return p.secretIn(ctx, p.namespace, name)
}

// authority reads the Secret with the CAs of a cluster.
func (p *place) authority(ctx context.Context, cluster string) (corev1.Secret, error) {
	return p.secretIn(ctx, p.home, agent.AuthoritySecret(p.namespace, cluster))
}

// removeAuthority deletes the Secret with the CAs of a cluster.
func (p *place) removeAuthority(t *testing.T, cluster string) {
	t.Helper()
	home := p.Dynamic.Resource(coreResource("secrets")).Namespace(p.home)
	if err := home.Delete(t.Context(), agent.AuthoritySecret(p.namespace, cluster), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (p *place) secretIn(ctx context.Context, namespace, name string) (corev1.Secret, error) {
	var found corev1.Secret
	object, err := p.Dynamic.Resource(coreResource("secrets")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return found, err
	}
	err = schema.Decode(object, &found)
	return found, err
}

func (p *place) make(t *testing.T, what, document string) *unstructured.Unstructured {
	t.Helper()
	made, err := p.of(what).Create(t.Context(), object(t, document), metav1.CreateOptions{FieldManager: "user"})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (p *place) patch(t *testing.T, what, name, changes string, subresources ...string) *unstructured.Unstructured {
	t.Helper()
	patched, err := p.of(what).Patch(t.Context(), name, types.MergePatchType, []byte(changes), metav1.PatchOptions{FieldManager: "someone"}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

func (p *place) remove(t *testing.T, what, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := p.of(what).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
}

// gone waits until an object is no more.
func (p *place) gone(t *testing.T, what, name string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		found, err := p.of(what).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return fmt.Sprintf("%s %s is still there: %v %v", what, name, found.GetFinalizers(), found.Object["status"])
		}
		if !apierrors.IsNotFound(err) {
			return err.Error()
		}
		return ""
	})
}

// readyIn is the Ready condition of a status.
func readyIn(conditions []metav1.Condition) metav1.Condition {
	if condition := meta.FindStatusCondition(conditions, mysqlv1.ConditionReady); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}
