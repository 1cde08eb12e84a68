package rootfs

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

const (
	// leastPort and mostPort are below the ports that the kernel gives to connections, and to listeners that ask for any port. So nothing takes
	// the port of a mysqld while that starts again (ip_local_port_range, ip(7)).
	leastPort, mostPort = 20_000, 29_999
	portAttempts        = 100
)

// Port returns a port on which nothing listens.
func Port(tb testing.TB) int {
	tb.Helper()
	for range portAttempts {
		port := leastPort + rand.IntN(mostPort-leastPort+1)
		listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			tb.Fatal(err)
		}
		return port
	}
	tb.Fatalf("found no free port in %d attempts", portAttempts)
	return 0
}
