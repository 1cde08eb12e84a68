package integration

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/deploy"
	"github.com/mysql-operator/mysql-operator/schema"
)

// The accounts that operators of these tests have: one that the policies of the default kinds hold, and one for the kinds that reach
// further.
const (
	heldAccount = deploy.Name
	wideAccount = deploy.Name + "-wide"
)

// hold installs what manifests policy prints, for the operators of all test namespaces: every test here runs under it. It returns when it
// is in force.
func (p *place) hold(t *testing.T) {
	t.Helper()
	kinds := []apischema.GroupResource{}
	for _, kind := range schema.Kinds() {
		kinds = append(kinds, kind.GVR().GroupResource())
	}
	for _, of := range []deploy.Limits{
		{Account: deploy.Account{Namespace: "held", Name: heldAccount}, Kinds: kinds, ReadsSecrets: true},
		{Account: deploy.Account{Namespace: "wide", Name: wideAccount}, Kinds: kinds, Restarts: true, PlainPods: true},
	} {
		objects := deploy.Policy(of)
		for _, made := range objects {
			if policy, ok := made.(*admissionv1.ValidatingAdmissionPolicy); ok {
				for at := range policy.Spec.Validations {
					own := "request.namespace == '" + of.Account.Namespace + "'"
					policy.Spec.Validations[at].Expression = strings.ReplaceAll(policy.Spec.Validations[at].Expression, own, "request.namespace.startsWith('"+homePrefix+"')")
				}
				policy.Spec.MatchConditions[0].Expression = "request.userInfo.username.matches('^system:serviceaccount:test-[a-z0-9]+:" + of.Account.Name + "$')"
			}
		}
		registry{Server: p.Server, t: t}.applyObjects(objects)
	}
	soon(t, func(ctx context.Context) string { return p.isHeld(ctx, t) })
}

// isHeld asks, as the administrator pretending to be the operator, for what each of the policies refuses.
func (p *place) isHeld(ctx context.Context, t *testing.T) string {
	t.Helper()
	if p.account != heldAccount {
		return ""
	}
	config := rest.CopyConfig(p.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: p.operatorUser(), Groups: []string{"system:masters"}}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for what, document := range map[string]string{
		"services":   "{apiVersion: v1, kind: Service, metadata: {name: probe, labels: {app.kubernetes.io/managed-by: mysql-operator}}, spec: {type: NodePort, ports: [{port: 1}]}}",
		"configmaps": "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe}}",
		"pods":       "{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {containers: [{name: c, image: none}]}}",
		"jobs": "{apiVersion: batch/v1, kind: Job, metadata: {name: probe, labels: {app.kubernetes.io/managed-by: mysql-operator}}, " +
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: none}]}}}}",
	} {
		_, err := client.Resource(childResource(what)).Namespace(p.namespace).Create(ctx, object(t, document), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			return "the policy on " + what + " is not in force: " + errorText(err)
		}
	}
	return ""
}

func errorText(err error) string {
	if err == nil {
		return "the request was allowed"
	}
	return err.Error()
}

// accountFor is the operator's account for these kinds.
func accountFor(kinds []schema.Kind) string {
	for _, kind := range kinds {
		if kind.Kind == "TDSet" || kind.Kind == "ConfigMonitor" {
			return wideAccount
		}
	}
	return heldAccount
}
