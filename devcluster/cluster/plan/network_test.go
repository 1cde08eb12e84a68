package plan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		taken []string
		want  int
	}{
		"a machine with an ordinary network gets the first plan":   {taken: []string{"127.0.0.1/8", "192.168.1.7/24", "172.17.0.1/16"}, want: 0},
		"a second cluster leaves the first one's addresses alone":  {taken: []string{"10.250.0.1/24", "10.251.0.0/20"}, want: 1},
		"a company network around the node addresses is avoided":   {taken: []string{"10.250.0.0/22"}, want: 4},
		"a single route into the service addresses is avoided too": {taken: []string{"10.252.16.9/32", "10.251.1.0/24"}, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var taken []netip.Prefix
			for _, p := range tc.taken {
				taken = append(taken, netip.MustParsePrefix(p))
			}
			got, err := Choose(taken)
			if err != nil {
				t.Fatal(err)
			}
			if got.Index != tc.want {
				t.Errorf("plan %d, want %d", got.Index, tc.want)
			}
		})
	}
}

func TestChooseNothingLeft(t *testing.T) {
	t.Parallel()
	if n, err := Choose([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); err == nil {
		t.Errorf("chose plan %d on a machine that uses all of 10.0.0.0/8", n.Index)
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	want := Node{
		Number:  3,
		Name:    "node-3",
		Address: netip.MustParseAddr("10.250.2.13"),
		Pods:    netip.MustParsePrefix("10.251.35.0/24"),
		Link:    "devc2n3",
		MAC:     "02:dc:0a:fa:02:0d",
	}
	if diff := cmp.Diff(want, Network{Index: 2}.Node(3), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// No address may belong to two nodes, two clusters or two roles.
func TestPlansAreDisjoint(t *testing.T) {
	t.Parallel()
	var taken []netip.Prefix
	for i := range maxClusters {
		n := Network{Index: i}
		if n.overlaps(taken) {
			t.Errorf("plan %d overlaps an earlier one", i)
		}
		taken = append(taken, n.Nodes(), n.Pods(), n.Services())
		for j := 1; j <= MaxNodes; j++ {
			node := n.Node(j)
			if !n.Nodes().Contains(node.Address) || !n.Pods().Contains(node.Pods.Addr()) {
				t.Errorf("%s of plan %d has %s and %s, outside its cluster's networks", node.Name, i, node.Address, node.Pods)
			}
			if len(node.Link) > 15 {
				t.Errorf("link name %q is longer than the kernel's 15 characters", node.Link)
			}
		}
	}
}
