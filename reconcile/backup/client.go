package backup

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/agent"
)

const (
	progressPath = "/v1/progress"
	maxBody      = 1 << 16
)

// Client asks running transfers how far they are, as the operator.
type Client struct {
	security *tls.Config
	timeout  time.Duration
	port     int
}

// NewClient makes a client that shows the certificate in security and trusts its CA (agent.OperatorTLS).
func NewClient(security *tls.Config, timeout time.Duration) *Client {
	return &Client{security: security, timeout: timeout, port: agent.Port}
}

// Progress asks the Pod at podIP, whose certificate must be for host (Host). That it does not answer says nothing about the transfer: it may
// not have begun to listen, or be about to end.
func (c *Client) Progress(ctx context.Context, podIP, host string) (Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	security := c.security.Clone()
	security.ServerName = host
	transport := &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	address := "https://" + net.JoinHostPort(podIP, strconv.Itoa(c.port)) + progressPath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return Progress{}, fmt.Errorf("ask %s for its progress: %w", podIP, err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return Progress{}, fmt.Errorf("ask %s for its progress: %w", podIP, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return Progress{}, fmt.Errorf("ask %s for its progress: %w", podIP, err)
	}
	if response.StatusCode != http.StatusOK {
		return Progress{}, fmt.Errorf("ask %s for its progress: %s: %s", podIP, response.Status, strings.TrimSpace(string(body)))
	}
	var progress Progress
	if err := json.Unmarshal(body, &progress); err != nil {
		return Progress{}, fmt.Errorf("read the progress of %s: %w", podIP, err)
	}
	return progress, nil
}
