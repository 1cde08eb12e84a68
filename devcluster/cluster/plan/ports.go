package plan

import "fmt"

// Ports of the control plane on the machine's own addresses.
type Ports struct {
	API        int `json:"api"`
	EtcdClient int `json:"etcdClient"`
	EtcdPeer   int `json:"etcdPeer"`
}

// Candidates for ports are below the range that the kernel uses for outgoing connections (from 32768 by default). So no such connection
// takes a port between its choice and its use.
const (
	firstPort = 20000
	lastPort  = 31999
)

// ChoosePorts returns free ports, searching from a starting point, which may be any number. Different starting points keep clusters that
// start at the same time apart.
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
