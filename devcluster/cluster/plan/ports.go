package plan

import "fmt"

// Ports of the control plane on the machine's own addresses.
type Ports struct {
	API        int `json:"api"`
	EtcdClient int `json:"etcdClient"`
	EtcdPeer   int `json:"etcdPeer"`
}

// Candidates for ports lie below the range the kernel hands to outgoing
// connections (from 32768 on by default), so that none of those takes a port
// between our choice and its use.
const (
	firstPort = 20000
	lastPort  = 31999
)

// ChoosePorts picks free ports, walking on from a starting point given as a
// number of any size, so that clusters started at once begin apart.
func ChoosePorts(start uint32, free func(port int) bool) (Ports, error) {
	const candidates = lastPort - firstPort + 1
	var found []int
	for i := range candidates {
		port := firstPort + (int(start%candidates)+i)%candidates
		if !free(port) {
			continue
		}
		if found = append(found, port); len(found) == 3 {
			return Ports{API: found[0], EtcdClient: found[1], EtcdPeer: found[2]}, nil
		}
	}
	return Ports{}, fmt.Errorf("choose ports: fewer than 3 free between %d and %d", firstPort, lastPort)
}
