package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// Client sends the operator's requests to the agents of one cluster.
type Client struct {
	lines   *agentConnections
	timeout time.Duration
	alarms  func() string
}

// NewClient returns a client. It calls security for the TLS configuration of each connection.
func NewClient(security func() *tls.Config, timeout time.Duration) *Client {
	return &Client{lines: &agentConnections{security: security}, timeout: timeout, alarms: func() string { return "" }}
}

// WithAlarms makes the client tell the agents where the operator takes the cluster's alarms: AlarmHost and a port. at returns "" while the
// operator takes none.
func (c *Client) WithAlarms(at func() string) *Client {
	c.alarms = at
	return c
}

// Close closes the idle connections. The client can still be used.
func (c *Client) Close() { c.lines.close() }

// Rest closes the idle connections if the next request comes later than they stay open: each takes about 10 KiB.
func (c *Client) Rest(until time.Duration) {
	if until >= keptFor {
		c.Close()
	}
}

// Target is how to connect to one member's agent: the Pod's current address, and the DNS name that its certificate must have.
type Target struct{ Address, Host string }

// Status asks a member for its status.
func (c *Client) Status(ctx context.Context, target Target) (replication.Status, error) {
	return c.lines.status(ctx, target, c.timeout, agentRequest{method: http.MethodGet, path: statusPath, alarms: c.alarms()})
}

func (l *agentConnections) status(ctx context.Context, target Target, within time.Duration, asked agentRequest) (replication.Status, error) {
	body, err := l.ask(ctx, target, within, asked)
	if err != nil {
		return replication.Status{}, fmt.Errorf("ask the agent of %s: %w", target.Host, explained(err))
	}
	var status replication.Status
	if json.Unmarshal(body, &status) != nil {
		return replication.Status{}, fmt.Errorf("ask the agent of %s: the answer is not a member's status", target.Host)
	}
	return status, nil
}

// Assign sends a member its assignment.
func (c *Client) Assign(ctx context.Context, target Target, assignment replication.Assignment) error {
	content, err := json.Marshal(assignment)
	if err != nil {
		return fmt.Errorf("assign %s: %w", target.Host, err)
	}
	body, err := c.do(ctx, target, http.MethodPut, assignmentPath, content)
	if answer := (*AnswerError)(nil); errors.As(err, &answer) && answer.Code == http.StatusConflict {
		err = refusal(body)
	}
	if err != nil {
		return fmt.Errorf("assign to the agent of %s: %w", target.Host, err)
	}
	return nil
}

// Match asks the primary to match hollow transactions.
func (c *Client) Match(ctx context.Context, target Target, asked replication.Matching) error {
	content, err := json.Marshal(asked)
	if err == nil {
		_, err = c.do(ctx, target, http.MethodPut, hollowPath, content)
	}
	if err != nil {
		return fmt.Errorf("ask the agent of %s to match hollow transactions: %w", target.Host, err)
	}
	return nil
}

// refusalBody is the body of a refusal. The operator repeats only its numbers. The member's next status has the reason as text.
type refusalBody struct {
	Epoch    int64 `json:"epoch"`
	Revision int64 `json:"revision"`
}

func refusal(body []byte) error {
	var held refusalBody
	if json.Unmarshal(body, &held) != nil {
		return errors.New("409: the agent refuses the assignment, because it is out of date")
	}
	return fmt.Errorf("409: the agent refuses the assignment, because it is out of date: the agent holds epoch %d, revision %d", held.Epoch, held.Revision)
}

// explained adds the cause of a status that is too large.
func explained(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%w: the member's GTID sets have tens of thousands of gaps; stop the clients that set gtid_next, and fill the gaps", err)
	}
	return err
}

func (c *Client) do(ctx context.Context, target Target, method, path string, content []byte) ([]byte, error) {
	return c.lines.ask(ctx, target, c.timeout, agentRequest{method: method, path: path, content: content, alarms: c.alarms()})
}
