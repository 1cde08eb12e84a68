package integration

import (
	"context"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/deploy"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
)

// asOperator is a client with the rights of the place's operator.
func (p *place) asOperator(t *testing.T) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(p.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: p.operatorUser(), Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAnOperatorOfANamespaceReachesNoOther: with what the manifests grant for --namespaces it works in that namespace, and can neither
// read nor change a cluster of another.
func TestAnOperatorOfANamespaceReachesNoOther(t *testing.T) {
	t.Parallel()
	here, there := newSite(t), newPlace(t, pool.Shared(t), mysqlClusters())
	defined, err := definitions.Load([]schema.Kind{mysqlClusters()})
	if err != nil {
		t.Fatal(err)
	}
	here.grant(t, nil)
	account := deploy.Account{Namespace: here.namespace, Name: deploy.Name}
	registry{Server: here.Server, t: t}.applyObjects(deploy.RBAC(account, []string{here.namespace}, deploy.Permissions{
		Objects: rulesOf(mysqlcluster.Controller(mysqlClusters(), mysqlcluster.Operator{})), Definitions: crds.Rules(defined),
	}))
	here.operate(t, nil)
	here.apply(t, "db", "secret: root")
	here.settled(t, "db")

	others := &site{place: there}
	others.apply(t, "db", "secret: root")
	for what, try := range map[string]func(context.Context, dynamic.ResourceInterface) error{
		"read it": func(ctx context.Context, clusters dynamic.ResourceInterface) error {
			_, err := clusters.Get(ctx, "db", metav1.GetOptions{})
			return err
		},
		"list them": func(ctx context.Context, clusters dynamic.ResourceInterface) error {
			_, err := clusters.List(ctx, metav1.ListOptions{})
			return err
		},
		"patch it": func(ctx context.Context, clusters dynamic.ResourceInterface) error {
			_, err := clusters.Patch(ctx, "db", types.MergePatchType, []byte(`{"spec":{"image":"evil.example/mysqld"}}`), metav1.PatchOptions{})
			return err
		},
	} {
		if err := try(t.Context(), here.asOperator(t).Resource(mysqlClusters().GVR()).Namespace(there.namespace)); !apierrors.IsForbidden(err) {
			t.Errorf("to %s in another namespace: %v, want Forbidden", what, err)
		}
	}
}

// TestSecretsOfANamespaceAreGrantedThere: an operator without permissions on Secrets names the command that grants them in the namespace.
// It continues when an administrator has run the command.
func TestSecretsOfANamespaceAreGrantedThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	apart := deploy.Permissions{Objects: operatorRules()}.SeparateSecrets()
	s.grant(t, apart.Objects)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.stalled(t, s.until(t, "db", "Forbidden"), "kubectl create rolebinding "+deploy.SecretsRole+" --namespace="+s.namespace+
		" --clusterrole="+deploy.SecretsRole+" --serviceaccount="+s.namespace+":mysql-operator")
	// What it may not read it may not have a Pod read either.
	reader := object(t, job(restrictedPod+", volumes: [{name: s, secret: {secretName: root}}]"))
	fromEnvironment := object(t, job(strings.Replace(restrictedPod, "image: none,", "image: none, env: [{name: E, valueFrom: {secretKeyRef: {name: root, key: password}}}],", 1)))
	s.grant(t, append(slices.Clone(apart.Objects), rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create"}}))
	jobs := s.asOperator(t).Resource(childResource("jobs")).Namespace(s.namespace)
	for _, made := range []*unstructured.Unstructured{reader, fromEnvironment} {
		soon(t, func(ctx context.Context) string {
			_, err := jobs.Create(ctx, made, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only in namespaces where it may read Secrets") {
				return errorText(err)
			}
			return ""
		})
	}

	account := deploy.Account{Namespace: s.namespace, Name: deploy.Name}
	registry{Server: s.Server, t: t}.applyObjects(deploy.RBAC(account, []string{s.namespace}, deploy.Permissions{Secrets: apart.Secrets}))
	s.bindSecrets(t)
	s.settled(t, "db")
}

// bindSecrets does what the command does.
func (s *site) bindSecrets(t *testing.T) {
	t.Helper()
	binding := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "+deploy.SecretsRole+"}, "+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "+deploy.SecretsRole+"}, "+
		"subjects: [{kind: ServiceAccount, namespace: "+s.namespace+", name: mysql-operator}]}")
	if _, err := s.of("rolebindings").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
