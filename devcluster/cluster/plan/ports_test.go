package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoosePorts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		start uint32
		taken []int
		want  Ports
	}{
		"the first three when nothing runs":      {want: Ports{API: 20000, EtcdClient: 20001, EtcdPeer: 20002}},
		"taken ports are stepped over":           {taken: []int{20000, 20002}, want: Ports{API: 20001, EtcdClient: 20003, EtcdPeer: 20004}},
		"a start near the end wraps around":      {start: 11999, want: Ports{API: 31999, EtcdClient: 20000, EtcdPeer: 20001}},
		"a start beyond the range is brought in": {start: 12000 * 7, want: Ports{API: 20000, EtcdClient: 20001, EtcdPeer: 20002}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ChoosePorts(tc.start, func(port int) bool {
				return !slices.Contains(tc.taken, port)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChoosePortsNoneFree(t *testing.T) {
	t.Parallel()
	if got, err := ChoosePorts(5, func(port int) bool { return port < firstPort+2 }); err == nil {
		t.Errorf("chose %+v with two ports free", got)
	}
}
