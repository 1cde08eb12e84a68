package agent

import (
	"crypto/tls"
	"net/http"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

// What follows is for the other programs that run in a cluster's Pods: they show the same certificate as members, and let the same
// operator in.

// ClientTLS is how a program in one of the cluster's Pods connects to its members.
func (l Layout) ClientTLS() (*tls.Config, error) { return (&tlsFiles{layout: l}).client() }

// ServerTLS is how such a program serves; it reads the certificate anew for every connection. Whether a client has shown a certificate is
// for the routes to ask: OperatorOnly.
func (l Layout) ServerTLS() *tls.Config { return (&tlsFiles{layout: l}).server() }

// Account reads one of the operator's accounts.
func (l Layout) Account(user string) (mysqld.Account, error) { return l.readAccount(user) }

// OperatorOnly refuses everybody who has not shown the operator's certificate.
func OperatorOnly(next http.HandlerFunc) http.HandlerFunc { return operatorOnly(next) }
