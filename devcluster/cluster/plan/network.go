// Package plan chooses the addresses and ports of a dev cluster. It only decides and changes nothing.
package plan

import (
	"fmt"
	"net/netip"
)

const (
	// MaxNodes is the number of nodes that the address plan has room for.
	MaxNodes = 15
	// maxClusters is the number of clusters with nodes that can run on one machine.
	maxClusters = 16
)

// Network is the address plan of one cluster with nodes. The plans of all sixteen clusters are in 10.250.0.0 to 10.252.255.255:
//
//	nodes     10.250.I.0/24       the machine itself is .1, node J is .10+J
//	pods      10.251.(16·I).0/20  node J has 10.251.(16·I+J).0/24
//	services  10.252.(16·I).0/20
type Network struct {
	Index int `json:"index"`
}

// Node is the part of the plan that belongs to one node.
type Node struct {
	Number  int
	Name    string
	Address netip.Addr   // on the cluster's bridge
	Pods    netip.Prefix // its pods' addresses
	Link    string       // the machine's end of the node's veth pair
	MAC     string       // of the node's end; fixed, so that neighbours need not learn it again
}

// Networks returns all possible plans.
func Networks() []Network {
	all := make([]Network, maxClusters)
	for i := range all {
		all[i].Index = i
	}
	return all
}

// Choose returns the first plan that overlaps none of the prefixes in use.
func Choose(taken []netip.Prefix) (Network, error) {
	for _, n := range Networks() {
		if !n.overlaps(taken) {
			return n, nil
		}
	}
	return Network{}, fmt.Errorf("choose cluster network: all %d plans in 10.250.0.0-10.252.255.255 are in use on this machine", maxClusters)
}

func (n Network) overlaps(taken []netip.Prefix) bool {
	for _, t := range taken {
		if t.Overlaps(n.Nodes()) || t.Overlaps(n.Pods()) || t.Overlaps(n.Services()) {
			return true
		}
	}
	return false
}

// Bridge returns the name of the bridge that connects all nodes. The cluster's control groups have the same name.
func (n Network) Bridge() string { return fmt.Sprintf("devcluster%d", n.Index) }

// Nodes returns the network of the machine and the nodes.
func (n Network) Nodes() netip.Prefix { return netip.PrefixFrom(v4(250, n.Index, 0), 24) }

// Pods returns the network of all pods.
func (n Network) Pods() netip.Prefix { return netip.PrefixFrom(v4(251, 16*n.Index, 0), 20) }

// Services returns the network of all cluster IPs.
func (n Network) Services() netip.Prefix { return netip.PrefixFrom(v4(252, 16*n.Index, 0), 20) }

// Host returns the machine's own address in the nodes' network, where the control plane, DNS and the image registry listen.
func (n Network) Host() netip.Addr { return v4(250, n.Index, 1) }

// HostMAC returns the bridge's hardware address. It is fixed, because it would otherwise change when an interface is attached.
func (n Network) HostMAC() string { return mac(n.Host()) }

// API returns the cluster IP of the Service "kubernetes", the first of its network.
func (n Network) API() netip.Addr { return n.Services().Addr().Next() }

// Node returns node number j, counted from 1 to MaxNodes.
func (n Network) Node(j int) Node {
	address := v4(250, n.Index, 10+j)
	return Node{
		Number:  j,
		Name:    fmt.Sprintf("node-%d", j),
		Address: address,
		Pods:    netip.PrefixFrom(v4(251, 16*n.Index+j, 0), 24),
		Link:    fmt.Sprintf("devc%dn%d", n.Index, j),
		MAC:     mac(address),
	}
}

func v4(b, c, d int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(b), byte(c), byte(d)}) }

// mac returns a locally administered hardware address for an IPv4 address.
func mac(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("02:dc:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}
