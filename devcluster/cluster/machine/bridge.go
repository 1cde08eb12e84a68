package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

// bridgeCommands returns the commands, for "ip -batch", that create the bridge of the nodes.
func bridgeCommands(n plan.Network) string {
	return fmt.Sprintf(`link add %[1]s address %[2]s type bridge
addr add %[3]s/%[4]d dev %[1]s
link set %[1]s up
`, n.Bridge(), n.HostMAC(), n.Host(), n.Nodes().Bits())
}

// maxMark is a little less than the kernel's limit for an interface's alias.
const maxMark = 250

// mark returns the alias of the bridge of the cluster in the folder: the folder, or the end of a very long one.
func mark(dir string) string {
	return strings.ToValidUTF8(dir[max(0, len(dir)-maxMark):], "")
}

// Ownership describes which cluster on this machine uses a cluster network.
type Ownership struct {
	Exists bool   // its bridge exists
	Owner  string // the folder of the cluster that created it; empty if its launcher died before it set the alias
}

// Foreign reports whether the network belongs to another cluster. A restart of the machine removes bridges, and the first cluster that
// starts then gets the addresses.
func (o Ownership) Foreign(dir string) bool {
	return o.Exists && o.Owner != "" && o.Owner != mark(dir)
}

// Owned reports whether the network certainly belongs to the cluster in the folder.
func (o Ownership) Owned(dir string) bool { return o.Exists && o.Owner == mark(dir) }

// OwnershipOf returns the owner of the network.
func OwnershipOf(ctx context.Context, n plan.Network) (Ownership, error) {
	if _, err := net.InterfaceByName(n.Bridge()); err != nil {
		return Ownership{}, nil //nolint:nilerr // there is no bridge
	}
	output, err := Output(ctx, "", "ip", "-json", "link", "show", "dev", n.Bridge())
	if _, gone := net.InterfaceByName(n.Bridge()); err != nil && gone != nil {
		return Ownership{}, nil //nolint:nilerr // the bridge no longer exists
	}
	if err != nil {
		return Ownership{}, fmt.Errorf("find the owner of bridge %s: %w", n.Bridge(), err)
	}
	var links []struct {
		Alias string `json:"ifalias"`
	}
	if err := json.Unmarshal([]byte(output), &links); err != nil {
		return Ownership{}, fmt.Errorf("find the owner of bridge %s: unexpected output of ip %q: %w", n.Bridge(), output, err)
	}
	if len(links) != 1 {
		return Ownership{}, fmt.Errorf("find the owner of bridge %s: unexpected output of ip %q", n.Bridge(), output)
	}
	return Ownership{Exists: true, Owner: links[0].Alias}, nil
}

// EnsureBridge creates the bridge of the cluster in the folder, unless it exists, and marks it as that cluster's. It returns an error if
// the bridge belongs to another cluster. Callers must hold a lock.
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
