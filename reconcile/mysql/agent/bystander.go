package agent

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// bystanderHeader of a request for the status means that a person looks, and not the operator. The agent sends the operator an alarm about
// what the operator has not read, so it must not take this request for the operator's look.
const bystanderHeader = "Mysql-Operator-Bystander"

// Bystander asks the agents of one cluster for their status. It can do nothing else, and they do not remember it.
type Bystander struct {
	lines   *agentConnections
	timeout time.Duration
}

// NewBystander returns a Bystander. It calls security for the TLS configuration of each connection.
func NewBystander(security func() *tls.Config, timeout time.Duration) *Bystander {
	return &Bystander{lines: &agentConnections{security: security}, timeout: timeout}
}

// Close closes the idle connections.
func (b *Bystander) Close() { b.lines.close() }

// Status asks a member for its status.
func (b *Bystander) Status(ctx context.Context, target Target) (replication.Status, error) {
	return b.lines.status(ctx, target, b.timeout, agentRequest{method: http.MethodGet, path: statusPath, isBystander: true})
}
