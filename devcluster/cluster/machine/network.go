package machine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

// uplink is the name of the veth interface inside a node.
const uplink = "eth0"

// partitionMark distinguishes this package's firewall rules from those of kube-proxy.
const partitionMark = "devcluster-partition"

// plugCommands return the commands that create a node's veth pair and the route to its pods.
func plugCommands(n plan.Network, node plan.Node, pid int) string {
	cable := fmt.Sprintf("link add %s type veth peer name %s address %s netns %d\n", node.Link, uplink, node.MAC, pid)
	return cable + routeCommands(n, node)
}

// routeCommands return the commands that attach the veth interface to the bridge and route the node's pod addresses through it. They can be
// repeated.
func routeCommands(n plan.Network, node plan.Node) string {
	return fmt.Sprintf("link set %s master %s up\nroute replace %s via %s\n", node.Link, n.Bridge(), node.Pods, node.Address)
}

// insideCommands return the commands that set up the network inside a node: its address, and the routes to the pods of all possible nodes.
func insideCommands(n plan.Network, node plan.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "link set lo up\naddr add %s/%d dev %s\nlink set %s up\n", node.Address, n.Nodes().Bits(), uplink, uplink)
	for j := 1; j <= plan.MaxNodes; j++ {
		if other := n.Node(j); j != node.Number {
			fmt.Fprintf(&b, "route add %s via %s\n", other.Pods, other.Address)
		}
	}
	return b.String()
}

// forwardRule returns the iptables command for the rule that accepts packets from node to node over the bridge.
func forwardRule(n plan.Network, operation string) []string {
	return []string{iptables, "-w", "10", operation, "FORWARD", "-i", n.Bridge(), "-o", n.Bridge(), "-j", "ACCEPT"}
}

// AllowForwarding opens this machine's firewall between the nodes if it is closed. With br_netfilter, the rules for routed packets also
// apply to bridged ones, and container engines set their policy to DROP.
func AllowForwarding(ctx context.Context, n plan.Network) error {
	bridged, err := os.ReadFile("/proc/sys/net/bridge/bridge-nf-call-iptables")
	if err != nil || strings.TrimSpace(string(bridged)) != "1" {
		return nil //nolint:nilerr // without br_netfilter there is nothing to open
	}
	rules, err := Output(ctx, "", iptables, "-w", "10", "-S", "FORWARD")
	if err != nil {
		return fmt.Errorf("read this machine's firewall: %w", err)
	}
	if !strings.Contains(rules, "-P FORWARD DROP") || strings.Contains(rules, "-i "+n.Bridge()+" ") {
		return nil
	}
	if err := Run(ctx, forwardRule(n, "-I")...); err != nil {
		return fmt.Errorf("open this machine's firewall between the nodes: %w", err)
	}
	return nil
}

// ForgetForwarding removes what AllowForwarding added.
func ForgetForwarding(ctx context.Context, n plan.Network) error {
	rules, err := Output(ctx, "", iptables, "-w", "10", "-S", "FORWARD")
	if err != nil {
		return fmt.Errorf("read this machine's firewall: %w", err)
	}
	if !strings.Contains(rules, "-i "+n.Bridge()+" ") {
		return nil
	}
	if err := Run(ctx, forwardRule(n, "-D")...); err != nil {
		return fmt.Errorf("remove the rule for %s from this machine's firewall: %w", n.Bridge(), err)
	}
	return nil
}

// DisconnectNode removes the veth pair of a dead node. The kernel would remove it, too, but only after the last connection of the node has
// timed out.
func DisconnectNode(ctx context.Context, node plan.Node) error {
	return removeLink(ctx, node.Link)
}

func removeLink(ctx context.Context, name string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil //nolint:nilerr // the interface does not exist
	}
	err := Run(ctx, "ip", "link", "del", name)
	if _, left := net.InterfaceByName(name); err != nil && left == nil {
		return fmt.Errorf("remove network interface %s: %w", name, err)
	}
	return nil
}

// ConnectNode connects a node, given by its first process, to the bridge.
func ConnectNode(ctx context.Context, n plan.Network, node plan.Node, pid int) error {
	// The old veth pair may still exist if the node died by itself.
	if err := DisconnectNode(ctx, node); err != nil {
		return err
	}
	if _, err := Output(ctx, plugCommands(n, node, pid), "ip", "-batch", "-"); err != nil {
		return fmt.Errorf("connect %s to the bridge: %w", node.Name, err)
	}
	if _, err := Output(ctx, insideCommands(n, node), inNetwork(pid, "ip", "-batch", "-")...); err != nil {
		return fmt.Errorf("set up network of %s: %w", node.Name, err)
	}
	return nil
}

// ReconnectNode connects a running node to the bridge again, in case the bridge was removed and created again.
func ReconnectNode(ctx context.Context, n plan.Network, node plan.Node) error {
	if _, err := Output(ctx, routeCommands(n, node), "ip", "-batch", "-"); err != nil {
		return fmt.Errorf("connect %s to the bridge: %w", node.Name, err)
	}
	return nil
}

// RouteServices routes cluster IPs through the node, whose kube-proxy translates them.
func RouteServices(ctx context.Context, n plan.Network, through plan.Node) error {
	return Run(ctx, "ip", "route", "replace", n.Services().String(), "via", through.Address.String())
}

// partitionRules return the rules that drop all traffic between the node and the given others, or all traffic if none are given. No error
// is sent, as with a broken network. Each rule is table, chain and match.
func partitionRules(from []plan.Node) [][]string {
	if len(from) == 0 {
		return [][]string{{"raw", "PREROUTING", "-i", uplink}, {"mangle", "POSTROUTING", "-o", uplink}}
	}
	var rules [][]string
	for _, other := range from {
		for _, prefix := range []string{other.Address.String() + "/32", other.Pods.String()} {
			rules = append(rules,
				[]string{"raw", "PREROUTING", "-i", uplink, "-s", prefix},
				[]string{"mangle", "POSTROUTING", "-o", uplink, "-d", prefix},
			)
		}
	}
	return rules
}

// Partition cuts the node, given by its first process, off from others, or from everything including the control plane if none are given.
// It replaces an earlier partition of the node.
func Partition(ctx context.Context, pid int, from []plan.Node) error {
	if err := Heal(ctx, pid); err != nil {
		return err
	}
	for _, r := range partitionRules(from) {
		args := append([]string{iptables, "-w", "10", "-t", r[0], "-I", r[1]}, r[2:]...)
		args = append(args, "-m", "comment", "--comment", partitionMark, "-j", "DROP")
		if err := Run(ctx, inNetwork(pid, args...)...); err != nil {
			return fmt.Errorf("partition node: %w", err)
		}
	}
	return nil
}

// Heal ends a partition.
func Heal(ctx context.Context, pid int) error {
	for _, table := range []string{"raw", "mangle"} {
		rules, err := Output(ctx, "", inNetwork(pid, iptables, "-w", "10", "-t", table, "-S")...)
		if err != nil {
			return fmt.Errorf("heal node: %w", err)
		}
		for _, remove := range removals(rules) {
			args := append([]string{iptables, "-w", "10", "-t", table}, remove...)
			if err := Run(ctx, inNetwork(pid, args...)...); err != nil {
				return fmt.Errorf("heal node: %w", err)
			}
		}
	}
	return nil
}

// removals turns this package's lines of "iptables -S" into the arguments that delete them.
func removals(rules string) [][]string {
	var list [][]string
	for line := range strings.Lines(rules) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == "-A" && strings.Contains(line, partitionMark) {
			list = append(list, append([]string{"-D"}, fields[1:]...))
		}
	}
	return list
}

// Partitioned reports whether the node is cut off from any other.
func Partitioned(ctx context.Context, pid int) (bool, error) {
	rules, err := Output(ctx, "", inNetwork(pid, iptables, "-w", "10", "-t", "raw", "-S")...)
	return strings.Contains(rules, partitionMark), err
}

// inNetwork returns the command line that runs a command in the network of a process.
func inNetwork(pid int, command ...string) []string {
	return append([]string{"nsenter", "--target", strconv.Itoa(pid), "--net"}, command...)
}

// Inside returns the command line that runs a command in all namespaces of a process.
func Inside(pid int, command ...string) []string {
	return append([]string{"nsenter", "--target", strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--net", "--pid"}, command...)
}

// PrefixesInUse returns the networks that this machine has addresses in or routes to.
func PrefixesInUse() ([]netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read addresses of this machine: %w", err)
	}
	var used []netip.Prefix
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			used = append(used, prefix.Masked())
		}
	}
	content, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("read routes of this machine: %w", err)
	}
	routes, err := parseRoutes(string(content))
	return append(used, routes...), err
}

// parseRoutes reads /proc/net/route (proc_net(5)): destination and mask are hexadecimal in the byte order of the machine. Default routes
// are left out, because they would overlap everything.
func parseRoutes(table string) ([]netip.Prefix, error) {
	var routes []netip.Prefix
	lines := bufio.NewScanner(strings.NewReader(table))
	lines.Scan() // the heading
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 {
			return nil, fmt.Errorf("read routes of this machine: %q has %d fields", lines.Text(), len(fields))
		}
		destination, err1 := strconv.ParseUint(fields[1], 16, 32)
		mask, err2 := strconv.ParseUint(fields[7], 16, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("read routes of this machine: %w", err)
		}
		var address, bits [4]byte
		binary.NativeEndian.PutUint32(address[:], uint32(destination))
		binary.NativeEndian.PutUint32(bits[:], uint32(mask))
		if ones, _ := net.IPMask(bits[:]).Size(); ones > 0 {
			routes = append(routes, netip.PrefixFrom(netip.AddrFrom4(address), ones))
		}
	}
	return routes, nil
}
