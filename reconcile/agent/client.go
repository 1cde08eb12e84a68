package agent

import (
	"bytes"
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

	"github.com/mysql-operator/mysql-operator/reconcile/replication"
)

// Client speaks to the agents of one cluster, as the operator.
type Client struct {
	security *tls.Config
	timeout  time.Duration
}

// NewClient makes a client that shows the certificate in security and trusts its CA.
func NewClient(security *tls.Config, timeout time.Duration) *Client {
	return &Client{security: security, timeout: timeout}
}

// Target is where one member's agent is: the Pod's address now, and the DNS name that its certificate must carry.
type Target struct{ Address, Host string }

// Status asks a member how it is.
func (c *Client) Status(ctx context.Context, target Target) (replication.Status, error) {
	var status replication.Status
	body, err := c.do(ctx, target, http.MethodGet, statusPath, nil)
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return status, fmt.Errorf("read status of %s: %w", target.Host, err)
	}
	return status, nil
}

// Assign tells a member what it is to be.
func (c *Client) Assign(ctx context.Context, target Target, assignment replication.Assignment) error {
	content, err := json.Marshal(assignment)
	if err != nil {
		return fmt.Errorf("assign %s: %w", target.Host, err)
	}
	_, err = c.do(ctx, target, http.MethodPut, assignmentPath, content)
	return err
}

// do makes a connection for each request. A cluster that is as it should be asks seldom, and a connection kept open to a Pod that
// is gone would hide that it is.
func (c *Client) do(ctx context.Context, target Target, method, path string, content []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	security := c.security.Clone()
	security.ServerName = target.Host
	transport := &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	url := "https://" + net.JoinHostPort(target.Address, strconv.Itoa(Port)) + path
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s %s of %s: %w", method, path, target.Host, err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the agent of %s: %w", target.Host, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("ask the agent of %s: %w", target.Host, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("agent of %s: %s: %s", target.Host, response.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}
