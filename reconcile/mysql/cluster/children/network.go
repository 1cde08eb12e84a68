package children

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// Operator is what a cluster's children need to know about the operator.
type Operator struct {
	// Image is the operator's own image, for the containers that it adds to Pods.
	Image string
	// Home is the operator's own namespace, where the CAs of clusters are kept.
	Home string
	// Namespace and Labels select the operator's Pods. The namespace is empty if they cannot be selected, because the operator runs outside
	// of a Pod or in its node's network. No labels mean all Pods of the namespace.
	Namespace string
	Labels    map[string]string
	// AlarmAddress is where the operator takes members' alarms, in net.Listen's form (":8443"); empty for nowhere.
	AlarmAddress string
}

// NetworkPolicy limits which clients reach the members. It always allows what a member needs itself. kubelet's probes come from the Pod's
// own node, which policies never block (Kubernetes documentation, "Network Policies"). Without spec.network the policy allows every client:
// the operator does not delete it, because it has no permission to delete policies.
func NetworkPolicy(n Names, cluster v1.MySQLCluster, operator Operator) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return networkingv1ac.NetworkPolicy(n.Cluster, n.Namespace).WithLabels(n.Labels()).WithSpec(networkingv1ac.NetworkPolicySpec().
		WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(n.Labels())).
		WithPolicyTypes(networkingv1.PolicyTypeIngress).
		WithIngress(ingress(n, cluster, operator)...))
}

func ingress(n Names, cluster v1.MySQLCluster, operator Operator) []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	wanted := cluster.Spec.Network
	if wanted == nil {
		return []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration{networkingv1ac.NetworkPolicyIngressRule()}
	}
	members := podPeer(n.Labels())
	clients, agents := portRule(cluster.Spec.Port), portRule(agent.Port)
	if len(wanted.AllowFrom) > 0 {
		clients.WithFrom(members, podPeer(transfer.Labels(n.Cluster))).WithFrom(peers(wanted.AllowFrom)...)
	}
	if operator.Namespace != "" {
		agents.WithFrom(members, operator.peer()).WithFrom(peers(wanted.MetricsFrom)...)
	}
	return []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration{clients, agents}
}

// portRule lets every client reach a port, until peers are added.
func portRule(port int32) *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	return networkingv1ac.NetworkPolicyIngressRule().WithPorts(
		networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
}

// podPeer selects Pods of the cluster's own namespace.
func podPeer(labels map[string]string) *networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	return networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(labels))
}

func (o Operator) peer() *networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	return podPeer(o.Labels).WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: o.Namespace}))
}

// peers returns the peers that the user lists.
func peers(wanted []v1.NetworkPeer) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	made := make([]*networkingv1ac.NetworkPolicyPeerApplyConfiguration, 0, len(wanted))
	for _, one := range wanted {
		peer := networkingv1ac.NetworkPolicyPeer()
		if one.CIDR != "" {
			peer.WithIPBlock(networkingv1ac.IPBlock().WithCIDR(one.CIDR))
		}
		if len(one.PodLabels) > 0 {
			peer.WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(one.PodLabels))
		}
		if len(one.NamespaceLabels) > 0 {
			peer.WithNamespaceSelector(metav1ac.LabelSelector().WithMatchLabels(one.NamespaceLabels))
		}
		made = append(made, peer)
	}
	return made
}
