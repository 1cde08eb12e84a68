package protocol

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
)

// ProgressPath is where a transfer's Pod answers Client.
const ProgressPath = "/v1/progress"

const maxBody = 1 << 16

// Client asks running transfers for their progress, as the operator.
type Client struct {
	security func() *tls.Config
	timeout  time.Duration
	port     int
}

// NewClient returns a client. It calls security (agent.OperatorTLS) for the TLS configuration of each connection. Pods answer on the port
// agent.Port.
func NewClient(security func() *tls.Config, timeout time.Duration, port int) *Client {
	return &Client{security: security, timeout: timeout, port: port}
}

// Progress asks the Pod at podIP, whose certificate must be for host (Host). A missing answer means nothing for the transfer: its Pod may
// not listen yet, or be about to end.
func (c *Client) Progress(ctx context.Context, podIP, host string) (Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	address := "https://" + net.JoinHostPort(podIP, strconv.Itoa(c.port)) + ProgressPath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return Progress{}, fmt.Errorf("ask %s for its progress: %w", podIP, err)
	}
	client := agent.NewPodClient(c.security(), host)
	defer client.CloseIdleConnections()
	body, err := agent.Ask(client, request, maxBody)
	if err != nil {
		return Progress{}, fmt.Errorf("ask %s for its progress: %w", podIP, err)
	}
	var progress Progress
	if json.Unmarshal(body, &progress) != nil {
		return Progress{}, fmt.Errorf("ask %s for its progress: its answer is not valid", podIP)
	}
	return progress, nil
}
