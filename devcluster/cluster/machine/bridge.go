package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

// bridgeCommands, for "ip -batch", make the bridge that nodes are plugged into.
func bridgeCommands(n plan.Network) string {
	return fmt.Sprintf(`link add %[1]s address %[2]s type bridge
addr add %[3]s/%[4]d dev %[1]s
link set %[1]s up
`, n.Bridge(), n.HostMAC(), n.Host(), n.Nodes().Bits())
}

// maxMark is a little less than the kernel's limit for an interface's alias.
const maxMark = 250

// mark is what a bridge carries as its alias: the folder of its cluster, or the
// end of a very long one.
func mark(dir string) string {
	return strings.ToValidUTF8(dir[max(0, len(dir)-maxMark):], "")
}

// Ownership tells whose a cluster network is on this machine.
type Ownership struct {
	Exists bool   // its bridge is there
	Owner  string // the folder of the cluster that made it; empty if its launcher died before it said so
}

// Foreign tells whether the network is another cluster's. A restart of the
// machine takes bridges away, and whoever is up first then gets the addresses.
func (o Ownership) Foreign(dir string) bool {
	return o.Exists && o.Owner != "" && o.Owner != mark(dir)
}

// Owned tells whether the network is surely the cluster's in the folder.
func (o Ownership) Owned(dir string) bool { return o.Exists && o.Owner == mark(dir) }

// OwnershipOf finds out whose the network is.
func OwnershipOf(ctx context.Context, n plan.Network) (Ownership, error) {
	if _, err := net.InterfaceByName(n.Bridge()); err != nil {
		return Ownership{}, nil //nolint:nilerr // there is none
	}
	output, err := Output(ctx, "", "ip", "-json", "link", "show", "dev", n.Bridge())
	if _, gone := net.InterfaceByName(n.Bridge()); err != nil && gone != nil {
		return Ownership{}, nil //nolint:nilerr // there is none any more
	}
	if err != nil {
		return Ownership{}, fmt.Errorf("find out whose bridge %s is: %w", n.Bridge(), err)
	}
	var links []struct {
		Alias string `json:"ifalias"`
	}
	if err := json.Unmarshal([]byte(output), &links); err != nil {
		return Ownership{}, fmt.Errorf("find out whose bridge %s is: ip answered %q: %w", n.Bridge(), output, err)
	}
	if len(links) != 1 {
		return Ownership{}, fmt.Errorf("find out whose bridge %s is: ip answered %q", n.Bridge(), output)
	}
	return Ownership{Exists: true, Owner: links[0].Alias}, nil
}

// EnsureBridge makes the bridge of the cluster in the folder, unless it is there,
// and marks it as that cluster's. One of another cluster is an error. Callers
// keep each other out, with a lock.
func EnsureBridge(ctx context.Context, n plan.Network, dir string) error {
	found, err := OwnershipOf(ctx, n)
	if err != nil || found.Owned(dir) {
		return err
	}
	if found.Foreign(dir) {
		return fmt.Errorf("make bridge %s: it belongs to the cluster in %s, which was started while this one was not running: take one of the two down", n.Bridge(), found.Owner)
	}
	if !found.Exists {
		if _, err := Output(ctx, bridgeCommands(n), "ip", "-batch", "-"); err != nil {
			return fmt.Errorf("make bridge %s: %w", n.Bridge(), err)
		}
	}
	if err := Run(ctx, "ip", "link", "set", "dev", n.Bridge(), "alias", mark(dir)); err != nil {
		return fmt.Errorf("mark bridge %s: %w", n.Bridge(), err)
	}
	return nil
}

// RemoveBridge removes the bridge, and with it the addresses and routes on it.
func RemoveBridge(ctx context.Context, n plan.Network) error {
	return removeLink(ctx, n.Bridge())
}
