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

// Client speaks to the agents of one cluster, as the operator.
type Client struct {
	lines   *lines
	timeout time.Duration
}

// NewClient makes a client that shows the certificate in security and trusts its CA.
func NewClient(security *tls.Config, timeout time.Duration) *Client {
	return &Client{lines: &lines{security: security}, timeout: timeout}
}

// Close ends the connections that are kept. The client can still be used.
func (c *Client) Close() { c.lines.close() }

// Target is where one member's agent is: the Pod's address now, and the DNS name that its certificate must carry.
type Target struct{ Address, Host string }

// Status asks a member how it is.
func (c *Client) Status(ctx context.Context, target Target) (replication.Status, error) {
	body, err := c.do(ctx, target, http.MethodGet, statusPath, nil)
	if err != nil {
		return replication.Status{}, fmt.Errorf("ask the agent of %s: %w", target.Host, explained(err))
	}
	var status replication.Status
	if json.Unmarshal(body, &status) != nil {
		return replication.Status{}, fmt.Errorf("ask the agent of %s: its answer is not a member's status", target.Host)
	}
	return status, nil
}

// Assign tells a member what it is to be.
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

// refused is the body of a refusal. The operator repeats its numbers only; in words it is in the member's next status.
type refused struct {
	Epoch    int64 `json:"epoch"`
	Revision int64 `json:"revision"`
}

func refusal(body []byte) error {
	var held refused
	if json.Unmarshal(body, &held) != nil {
		return errors.New("409: it refuses the assignment as out of date")
	}
	return fmt.Errorf("409: it refuses the assignment as out of date: it holds epoch %d, revision %d", held.Epoch, held.Revision)
}

// explained adds what makes a status too large.
func explained(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%w: GTID sets have tens of thousands of gaps there; have clients stop setting gtid_next, and fill the gaps", err)
	}
	return err
}

func (c *Client) do(ctx context.Context, target Target, method, path string, content []byte) ([]byte, error) {
	return c.lines.ask(ctx, target, c.timeout, question{method: method, path: path, content: content})
}
