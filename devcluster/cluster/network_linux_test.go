package cluster

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/machine"
	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

// unshared runs the rest of the test in its own network and mount namespaces, after the installation of the programs that nodes need. The
// thread is never unlocked, and so ends with the test.
func unshared(t *testing.T) {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("needs root and may install packages: not in short mode")
	}
	if err := machine.Install(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_FS); err != nil {
		t.Fatalf("make namespaces: %v", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make the mounts private: %v", err)
	}
}

// recorded returns a folder whose state says that its cluster has the network.
func recorded(t *testing.T, n plan.Network) folder {
	t.Helper()
	f := folder(t.TempDir())
	if err := f.save(newState(Options{}, plan.Ports{}, &n)); err != nil {
		t.Fatal(err)
	}
	return f
}

func exists(n plan.Network) bool {
	_, err := net.InterfaceByName(n.Bridge())
	return err == nil
}

// A restart of the machine removes all bridges, and another clone's cluster may then get the addresses of this one.
func TestDownLeavesTheNetworkThatAnotherClusterTookOver(t *testing.T) {
	t.Parallel()
	unshared(t)
	n := plan.Network{Index: 15}
	mine, theirs := recorded(t, n), recorded(t, n)
	if err := machine.EnsureBridge(t.Context(), n, string(theirs)); err != nil {
		t.Fatal(err)
	}
	if err := machine.EnsureBridge(t.Context(), n, string(mine)); err == nil || !strings.Contains(err.Error(), string(theirs)) {
		t.Errorf("error %v, want one that names the owner of the bridge", err)
	}
	l := &launcher{options: Options{Dir: string(mine)}, folder: mine, state: state{Network: &n}}
	if err := l.checkNetwork(t.Context()); err == nil || !strings.Contains(err.Error(), string(theirs)) {
		t.Errorf("error %v: an action on our nodes would affect theirs", err)
	}
	if err := mine.removeNetworks(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if !exists(n) {
		t.Fatal("the other cluster's bridge was removed")
	}
	if err := theirs.removeNetworks(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if exists(n) {
		t.Error("the bridge is still there after its own cluster went down")
	}
}

func TestDownFindsItsNetworkWhenTheStateIsDamaged(t *testing.T) {
	t.Parallel()
	unshared(t)
	n, other := plan.Network{Index: 15}, plan.Network{Index: 14}
	mine, theirs := recorded(t, n), recorded(t, other)
	for network, f := range map[plan.Network]folder{n: mine, other: theirs} {
		if err := machine.EnsureBridge(t.Context(), network, string(f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(mine.stateFile(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), string(mine), t.Output()); err != nil {
		t.Fatal(err)
	}
	if exists(n) || !exists(other) {
		t.Errorf("ours exists: %t, theirs: %t", exists(n), exists(other))
	}
	if _, err := os.Stat(mine.files()); err == nil {
		t.Error("the cluster's files are still there")
	}
}

// A launcher that was killed after it created the bridge and before it marked it leaves a bridge that only its state names.
func TestABridgeWithoutAMarkBelongsToWhoRecordedIt(t *testing.T) {
	t.Parallel()
	unshared(t)
	n := plan.Network{Index: 15}
	mine := recorded(t, n)
	if err := machine.Run(t.Context(), "ip", "link", "add", n.Bridge(), "type", "bridge"); err != nil {
		t.Fatal(err)
	}
	found, err := machine.OwnershipOf(t.Context(), n)
	if err != nil || !found.Exists || found.Owner != "" || found.Foreign(string(mine)) {
		t.Fatalf("%+v: %v", found, err)
	}
	if err := machine.EnsureBridge(t.Context(), n, string(mine)); err != nil {
		t.Fatal(err)
	}
	if found, err = machine.OwnershipOf(t.Context(), n); err != nil || !found.Owned(string(mine)) {
		t.Errorf("%+v: %v", found, err)
	}
	if err := mine.removeNetworks(t.Context(), t.Output()); err != nil || exists(n) {
		t.Errorf("still there: %t, %v", exists(n), err)
	}
}

// A recursive removal would follow a bind mount and delete the files on the other side.
func TestDownRemovesNothingThroughAMount(t *testing.T) {
	t.Parallel()
	unshared(t)
	mine := recorded(t, plan.Network{Index: 15})
	precious, inside := t.TempDir(), filepath.Join(mine.files(), "volumes", "my data")
	if err := errors.Join(os.WriteFile(filepath.Join(precious, "thesis"), []byte("all of it"), 0o600), os.MkdirAll(inside, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(precious, inside, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	err := Down(t.Context(), string(mine), t.Output())
	if err == nil || !strings.Contains(err.Error(), inside) {
		t.Errorf("error %v, want one that names the mount", err)
	}
	if _, err := os.Stat(filepath.Join(precious, "thesis")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Unmount(inside, 0); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), string(mine), t.Output()); err != nil {
		t.Error(err)
	}
}
