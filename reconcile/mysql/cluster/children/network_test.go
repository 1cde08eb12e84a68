package children

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func anOperator() Operator {
	return Operator{Image: agentImage, Namespace: "operators", Labels: map[string]string{"app.kubernetes.io/name": "mysql-operator"}}
}

func selector(name, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{name: value}}
}

// portFrom returns a rule for one port.
func portFrom(port int32, from ...networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicyIngressRule {
	protocol, number := corev1.ProtocolTCP, intstr.FromInt32(port)
	return networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &protocol, Port: &number}}, From: from}
}

func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	members := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: NamesOf(aCluster(2)).Labels()}}
	backups := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: transfer.Labels("db")}}
	operator := networkingv1.NetworkPolicyPeer{
		PodSelector: selector("app.kubernetes.io/name", "mysql-operator"), NamespaceSelector: selector("kubernetes.io/metadata.name", "operators"),
	}
	wholeNamespace := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}, NamespaceSelector: operator.NamespaceSelector}
	tests := map[string]struct {
		network  *v1.Network
		operator Operator
		want     []networkingv1.NetworkPolicyIngressRule
	}{
		"without spec.network every client reaches everything": {nil, anOperator(), []networkingv1.NetworkPolicyIngressRule{{}}},
		"an empty one closes the agents' port": {
			&v1.Network{}, anOperator(), []networkingv1.NetworkPolicyIngressRule{portFrom(3306), portFrom(9443, members, operator)},
		},
		"clients are those that are listed, and our own": {
			&v1.Network{AllowFrom: []v1.NetworkPeer{
				{PodLabels: map[string]string{"app": "shop"}},
				{PodLabels: map[string]string{"app": "web"}, NamespaceLabels: map[string]string{"team": "a"}},
				{NamespaceLabels: map[string]string{"team": "b"}},
				{CIDR: "10.0.0.0/8"},
			}}, anOperator(), []networkingv1.NetworkPolicyIngressRule{
				portFrom(3306, members, backups,
					networkingv1.NetworkPolicyPeer{PodSelector: selector("app", "shop")},
					networkingv1.NetworkPolicyPeer{PodSelector: selector("app", "web"), NamespaceSelector: selector("team", "a")},
					networkingv1.NetworkPolicyPeer{NamespaceSelector: selector("team", "b")},
					networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}),
				portFrom(9443, members, operator),
			},
		},
		"metrics are for those that are listed": {
			&v1.Network{MetricsFrom: []v1.NetworkPeer{{NamespaceLabels: map[string]string{"team": "monitoring"}}}}, anOperator(),
			[]networkingv1.NetworkPolicyIngressRule{portFrom(3306), portFrom(9443, members, operator, networkingv1.NetworkPolicyPeer{NamespaceSelector: selector("team", "monitoring")})},
		},
		"an operator without labels that last is its namespace": {
			&v1.Network{}, Operator{Namespace: "operators"}, []networkingv1.NetworkPolicyIngressRule{portFrom(3306), portFrom(9443, members, wholeNamespace)},
		},
		"an operator outside of Pods cannot be named, and is not shut out": {
			&v1.Network{}, Operator{}, []networkingv1.NetworkPolicyIngressRule{portFrom(3306), portFrom(9443)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Network = test.network })
			policy := as[networkingv1.NetworkPolicy](t, NetworkPolicy(NamesOf(cluster), cluster, test.operator))
			if diff := cmp.Diff(test.want, policy.Spec.Ingress); diff != "" {
				t.Errorf("who gets in (-want +got):\n%s", diff)
			}
			if policy.Name != "db" || policy.Namespace != "shop" || !cmp.Equal(policy.Spec.PodSelector, *members.PodSelector) {
				t.Errorf("it is %s/%s for %v, want the members", policy.Namespace, policy.Name, policy.Spec.PodSelector)
			}
			if !cmp.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
				t.Errorf("it is about %v, want what comes in only", policy.Spec.PolicyTypes)
			}
		})
	}
}

// These labels identify the Pods of backups and restores.
func TestMembersAndBackupsAreToldApart(t *testing.T) {
	t.Parallel()
	members, backups := NamesOf(aCluster(2)).Labels(), transfer.Labels("db")
	if members[labelName] == backups[labelName] {
		t.Errorf("both are %s=%s: a policy for members would select backups", labelName, members[labelName])
	}
}
