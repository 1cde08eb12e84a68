package agent

import (
	"crypto/tls"
	"net/http"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
)

// The functions below are for the other programs in a cluster's Pods. They present the same certificate as members, and accept the same
// operator.

// ClientTLS returns how a program in one of the cluster's Pods connects to its members.
func (l Layout) ClientTLS() (*tls.Config, error) { return (&tlsFiles{layout: l}).client() }

// ServerTLS returns how such a program serves. It reads the certificate again for every connection. The routes must check whether a client
// has presented a certificate: OperatorOnly.
func (l Layout) ServerTLS() *tls.Config { return (&tlsFiles{layout: l}).server() }

// Account reads one of the operator's accounts.
func (l Layout) Account(user string) (mysqld.Account, error) { return l.readAccount(user) }

// OperatorOnly refuses every client that has not presented the operator's certificate.
func OperatorOnly(next http.HandlerFunc) http.HandlerFunc { return operatorOnly(next) }
