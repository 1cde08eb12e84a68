package machine

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/devcluster/cluster/plan"
)

func TestMissing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		present  []string
		names    []string
		packages []string
	}{
		"a machine with everything needs nothing": {
			present: []string{"containerd", "ctr", "runc", "iptables", "ip", "nsenter", "mount", "ptp", "host-local", "portmap", "loopback"},
		},
		"two programs of one package name it once": {
			present:  []string{"runc", "iptables", "ip", "nsenter", "mount", "ptp", "host-local", "portmap", "loopback"},
			names:    []string{"containerd", "ctr"},
			packages: []string{"containerd"},
		},
		"an engine's containerd does, only the plugins are fetched": {
			present:  []string{"containerd", "ctr", "runc", "iptables", "ip", "nsenter", "mount"},
			names:    []string{"ptp", "host-local", "portmap", "loopback"},
			packages: []string{cniPackage},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names, packages := missing(func(p program) bool { return strings.Contains(" "+strings.Join(tc.present, " ")+" ", " "+p.name+" ") })
			if diff := cmp.Diff([][]string{tc.names, tc.packages}, [][]string{names, packages}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// If the user presses Ctrl-C during the installation of packages, the installation must end cleanly.
func TestAnInterruptedCommandEndsInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	const script = `trap 'sleep 0.2; echo in order >"$0/ended"; exit 1' INT; echo >"$0/started"; while :; do sleep 0.05; done`
	done := make(chan error, 1)
	go func() { done <- Run(ctx, "sh", "-c", script, dir) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for started := false; !started; {
		select {
		case err := <-done:
			t.Fatalf("it ended before the interrupt: %v", err)
		case <-tick.C:
			_, err := os.Stat(filepath.Join(dir, "started"))
			started = err == nil
		}
	}
	interrupt()
	if err := <-done; err == nil {
		t.Error("an interrupted command counts as done")
	}
	if _, err := os.Stat(filepath.Join(dir, "ended")); err != nil {
		t.Errorf("it was killed before it ended: %v", err)
	}
}

// A second clone installs packages, too, or the machine does its daily update. Not parallel: the test puts another apt-get on PATH.
func TestAptGetWaitsForAnother(t *testing.T) {
	dir := t.TempDir()
	const script = `#!/bin/sh
echo "$*" >>"${0%/*}/calls"
[ "$(wc -l <"${0%/*}/calls")" -gt 2 ] && exit 0
echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)" >&2
exit 100
`
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := aptGet(t.Context(), "update"); err != nil {
		t.Error(err)
	}
	if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || string(calls) != "update\nupdate\nupdate\n" {
		t.Errorf("called with %q: %v", calls, err)
	}
}

func TestParseRoutes(t *testing.T) {
	t.Parallel()
	const table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
devcluster0	0000FA0A	00000000	0001	0	0	0	00FFFFFF	0	0	0
wg0	0000FC0A	00000000	0001	0	0	0	0000FFFF	0	0	0
`
	got, err := parseRoutes(table)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range got {
		list = append(list, p.String())
	}
	// The default route is left out, because it would overlap everything.
	if diff := cmp.Diff([]string{"10.250.0.0/24", "10.252.0.0/16"}, list); diff != "" {
		t.Error(diff)
	}
	if _, err := parseRoutes("heading\neth0 zz 0 0 0 0 0 zz\n"); err == nil {
		t.Error("an invalid table was read")
	}
}

func TestInsideCommandsRouteToEveryOtherNode(t *testing.T) {
	t.Parallel()
	n := plan.Network{Index: 1}
	got := insideCommands(n, n.Node(2))
	for _, want := range []string{"addr add 10.250.1.12/24 dev eth0\n", "route add 10.251.17.0/24 via 10.250.1.11\n", "route add 10.251.31.0/24 via 10.250.1.25\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, n.Node(2).Pods.String()) {
		t.Errorf("the node routes its own pods away:\n%s", got)
	}
}

func TestPartitionRules(t *testing.T) {
	t.Parallel()
	all := partitionRules(nil)
	if diff := cmp.Diff([][]string{{"raw", "PREROUTING", "-i", "eth0"}, {"mangle", "POSTROUTING", "-o", "eth0"}}, all); diff != "" {
		t.Error(diff)
	}
	one := partitionRules([]plan.Node{plan.Network{}.Node(3)})
	want := [][]string{
		{"raw", "PREROUTING", "-i", "eth0", "-s", "10.250.0.13/32"},
		{"mangle", "POSTROUTING", "-o", "eth0", "-d", "10.250.0.13/32"},
		{"raw", "PREROUTING", "-i", "eth0", "-s", "10.251.3.0/24"},
		{"mangle", "POSTROUTING", "-o", "eth0", "-d", "10.251.3.0/24"},
	}
	if diff := cmp.Diff(want, one); diff != "" {
		t.Error(diff)
	}
}

// Only this package's own rules are removed.
func TestRemovals(t *testing.T) {
	t.Parallel()
	const rules = `-P PREROUTING ACCEPT
-N KUBE-MARK
-A PREROUTING -i eth0 -m comment --comment devcluster-partition -j DROP
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
`
	want := [][]string{{"-D", "PREROUTING", "-i", "eth0", "-m", "comment", "--comment", "devcluster-partition", "-j", "DROP"}}
	if diff := cmp.Diff(want, removals(rules)); diff != "" {
		t.Error(diff)
	}
}

func TestMountsBelow(t *testing.T) {
	t.Parallel()
	const table = `/dev/vda / ext4 rw 0 0
tmpfs /d/cluster tmpfs rw 0 0
/dev/vda /d/cluster/volumes/a\040b ext4 rw 0 0
/dev/vda /d/cluster2 ext4 rw 0 0
`
	if diff := cmp.Diff([]string{"/d/cluster", "/d/cluster/volumes/a b"}, mountsBelow(table, "/d/cluster")); diff != "" {
		t.Error(diff)
	}
	if found, err := MountsBelow(filepath.Join(t.TempDir(), "gone")); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestOwnership(t *testing.T) {
	t.Parallel()
	long := "/home/" + strings.Repeat("ü", 200) + "/.dev"
	tests := map[string]struct {
		found          Ownership
		dir            string
		foreign, owned bool
	}{
		"no bridge has no owner":                   {dir: "/a/.dev"},
		"our own":                                  {found: Ownership{Exists: true, Owner: "/a/.dev"}, dir: "/a/.dev", owned: true},
		"another clone's":                          {found: Ownership{Exists: true, Owner: "/b/.dev"}, dir: "/a/.dev", foreign: true},
		"one without a mark has no known owner":    {found: Ownership{Exists: true}, dir: "/a/.dev"},
		"a folder longer than the kernel's limit":  {found: Ownership{Exists: true, Owner: mark(long)}, dir: long, owned: true},
		"another one, as long, in the same folder": {found: Ownership{Exists: true, Owner: mark(long)}, dir: long + "2", foreign: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if foreign, owned := tc.found.Foreign(tc.dir), tc.found.Owned(tc.dir); foreign != tc.foreign || owned != tc.owned {
				t.Errorf("foreign %t, owned %t; want %t, %t", foreign, owned, tc.foreign, tc.owned)
			}
			if len(mark(tc.dir)) > maxMark {
				t.Errorf("a mark of %d bytes", len(mark(tc.dir)))
			}
		})
	}
}

func TestHierarchies(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mounts string
		want   []string
	}{
		"version 2 is one tree": {mounts: "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", want: []string{"/sys/fs/cgroup"}},
		"version 1 is many, and mixed with 2 one more": {
			mounts: "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
			want:   []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"},
		},
		"none": {mounts: "proc /proc proc rw 0 0\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, hierarchies(tc.mounts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A new cpuset group has no CPUs, and no process can run in it before it gets some.
func TestInheritCPUs(t *testing.T) {
	t.Parallel()
	parent, dir := t.TempDir(), t.TempDir()
	write(t, parent, "cpuset.cpus", "0-1\n")
	write(t, parent, "cpuset.mems", "0\n")
	write(t, dir, "cpuset.cpus", "\n")
	write(t, dir, "cpuset.mems", "1\n")
	if err := inheritCPUs(parent, dir); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		got[file] = strings.TrimSpace(string(content))
	}
	if diff := cmp.Diff(map[string]string{"cpuset.cpus": "0-1", "cpuset.mems": "1"}, got); diff != "" {
		t.Error(diff)
	}
	if err := inheritCPUs(parent, t.TempDir()); err != nil {
		t.Errorf("another controller's group: %v", err)
	}
}

func TestRoutePrefixesDoNotHideTheMachine(t *testing.T) {
	t.Parallel()
	used, err := PrefixesInUse()
	if err != nil {
		t.Skipf("no routing table here: %v", err)
	}
	for _, p := range used {
		if p.Contains(netip.MustParseAddr("127.0.0.1")) {
			return
		}
	}
	t.Errorf("loopback is not among the networks in use: %v", used)
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
