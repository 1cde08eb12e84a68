package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/pki"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	mysqlcluster "github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster"
)

// trusted is what clients of a cluster are to trust.
func (s *site) trusted(ctx context.Context, cluster string) ([]byte, error) {
	found, err := s.of("configmaps").Get(ctx, cluster+"-ca-cert", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data, _ := found.Object["data"].(map[string]any)
	bundle, _ := data["ca.crt"].(string)
	return []byte(bundle), nil
}

// authorities are the CAs that the operator keeps for a cluster.
func (s *site) authorities(t *testing.T, cluster string) agent.Authorities {
	t.Helper()
	secret, err := s.authority(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	held, err := agent.ReadAuthorities(secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// bundled waits until members, clients and the operator agree on so many CAs, and returns them in PEM.
func (s *site) bundled(t *testing.T, cluster string, count int) []byte {
	t.Helper()
	var bundle []byte
	soon(t, func(ctx context.Context) string {
		kept, err := s.authority(ctx, cluster)
		if err != nil {
			return err.Error()
		}
		bundle = kept.Data["ca.crt"]
		given, err := s.secret(ctx, cluster+"-tls")
		if err != nil {
			return err.Error()
		}
		clients, err := s.trusted(ctx, cluster)
		if err != nil {
			return err.Error()
		}
		held, err := pki.ReadCertificates(bundle)
		if err != nil || len(held) != count || !bytes.Equal(given.Data["ca.crt"], bundle) || !bytes.Equal(clients, bundle) {
			return fmt.Sprintf("the operator keeps %d CAs, and not %d, or others have other ones (%v)", len(held), count, err)
		}
		return ""
	})
	return bundle
}

// connects says how a client that trusts these CAs fares with a member.
func (s *site) connects(t *testing.T, member string, bundle []byte) error {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	s.node.network.mu.Lock()
	address, host := "", ""
	for name, one := range s.node.network.running {
		if strings.HasPrefix(name, member+".") {
			address, host = one.address, name
		}
	}
	s.node.network.mu.Unlock()
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: host}}
	connection, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(address, strconv.Itoa(agent.Port)))
	if err == nil {
		_ = connection.Close()
	}
	return err
}

// asks sets, or with nil takes away, annotations of a cluster.
func (s *site) asks(t *testing.T, cluster string, annotations map[string]string) {
	t.Helper()
	lines := []string{}
	for name, value := range annotations {
		lines = append(lines, fmt.Sprintf("%q:%q", name, value))
	}
	s.patch(t, "mysqlclusters", cluster, `{"metadata":{"annotations":{`+strings.Join(lines, ",")+`}}}`)
}

// TestMySQLClusterKeepsItsCAFromItsNamespace: a user who reads everything in the cluster's namespace cannot sign certificates for it.
func TestMySQLClusterKeepsItsCAFromItsNamespace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	held := s.authorities(t, "db")
	if len(held) != 1 || !bytes.Equal(s.bundled(t, "db", 1), held.Bundle()) {
		t.Errorf("there are %d CAs", len(held))
	}
	all, err := s.of("secrets").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := s.authority(t.Context(), "db")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all.Items {
		found, err := s.secret(t.Context(), one.GetName())
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range found.Data {
			if bytes.Contains(value, secret.Data["ca.key"]) {
				t.Errorf("the CA's key is in Secret %s under %s", one.GetName(), key)
			}
			pair := pki.Pair{Certificate: pki.Encode(held[0].Leaf.Raw), Key: value}
			if _, err := pair.Parse(); err == nil {
				t.Errorf("Secret %s has the CA's key under %s", one.GetName(), key)
			}
		}
	}
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tenant"}
	s.grantTenant(t)
	tenant, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	soon(t, func(ctx context.Context) string {
		if _, err := tenant.Resource(coreResource("secrets")).Namespace(s.namespace).Get(ctx, "db-tls", metav1.GetOptions{}); err != nil {
			return err.Error() // the API server's authorizer hears of the rights a moment later
		}
		return ""
	})
	if _, err := tenant.Resource(coreResource("secrets")).Namespace(s.home).Get(t.Context(), secret.Name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a tenant reads the CA: %v", err)
	}
}

// grantTenant lets the user "tenant" read all Secrets of the cluster's namespace.
func (s *site) grantTenant(t *testing.T) {
	t.Helper()
	s.make(t, "roles", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: tenant}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get, list, watch]}]}")
	s.make(t, "rolebindings", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: tenant}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}, "+
		"subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: tenant}]}")
}

// TestMySQLClusterTakesItsCAAlong: the Secret in the operator's namespace goes with the cluster, also where that goes while no operator
// runs; that of a cluster that is there stays, and so does one of which it cannot be told.
func TestMySQLClusterTakesItsCAAlong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(t, nil)
	for _, name := range []string{"stays", "goes", "went"} {
		s.apply(t, name, "secret: root, replicas: 1")
	}
	for _, name := range []string{"stays", "goes", "went"} {
		s.settled(t, name)
	}
	s.remove(t, "mysqlclusters", "goes")
	s.authorityGone(t, "goes")
	o.finish(t)

	s.remove(t, "mysqlclusters", "went")
	s.gone(t, "mysqlclusters", "went")
	home := s.Dynamic.Resource(coreResource("secrets")).Namespace(s.home)
	others := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: ca."+s.namespace+".theirs}}")
	elsewhere := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: ca.elsewhere.db, labels: {app.kubernetes.io/managed-by: mysql-operator, cr.mysqloperator.grtl.github.com/cluster-uid: x}}}")
	for _, made := range []*unstructured.Unstructured{others, elsewhere} {
		if _, err := home.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	second := s.operate(t, nil)
	s.authorityGone(t, "went")
	s.settled(t, "stays")
	for _, name := range []string{agent.AuthoritySecret(s.namespace, "stays"), others.GetName(), elsewhere.GetName()} {
		if _, err := home.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("Secret %s is gone: %v", name, err)
		}
	}
	if errors := second.log.all(); len(errors) > 0 {
		t.Errorf("that is no error: %v", errors)
	}
}

func (s *site) authorityGone(t *testing.T, cluster string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		if _, err := s.authority(ctx, cluster); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the CA of %s is still there (%v)", cluster, err)
		}
		return ""
	})
}

// TestMySQLClusterLosesItsCA: the Secret is deleted, or damaged, while no operator runs. What members and clients trust stays, the
// operator comes to speak to them again, and nothing restarts.
func TestMySQLClusterLosesItsCA(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *site){
		"deleted": func(t *testing.T, s *site) { t.Helper(); s.removeAuthority(t, "db") },
		"damaged": func(t *testing.T, s *site) { t.Helper(); s.patchAuthority(t, "db", `{"data":{"ca.key":"eA=="}}`) },
		"of another cluster": func(t *testing.T, s *site) {
			t.Helper()
			s.patchAuthority(t, "db", `{"metadata":{"labels":{"cr.mysqloperator.grtl.github.com/cluster-uid":"another"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			o := s.operate(t, nil)
			s.apply(t, "db", "secret: root")
			before := s.settled(t, "db")
			old, shown := s.bundled(t, "db", 1), s.ownSecrets(t.Context(), "db")["db-tls"]["tls.crt"]
			o.finish(t)
			lose(t, s)
			s.operate(t, nil)

			both := s.bundled(t, "db", 2)
			s.rotation(t, "db", "WaitingForClients", "db-ca-cert")
			after := s.settled(t, "db")
			if !bytes.HasSuffix(both, old) || !bytes.Equal(s.ownSecrets(t.Context(), "db")["db-tls"]["tls.crt"], shown) {
				t.Error("the CA that clients know is not trusted, or the members' certificate was replaced at once")
			}
			for _, member := range []string{"db-0", "db-1"} {
				if err := s.connects(t, member, old); err != nil {
					t.Errorf("a client of before is refused by %s: %v", member, err)
				}
			}
			same(t, after.Status.Epoch, before.Status.Epoch)
			s.node.podsOnce(t, "db", 2)
			s.asks(t, "db", map[string]string{mysqlcluster.AnnotationOverlap: "0s"})
			alone := s.bundled(t, "db", 1)
			if bytes.Equal(alone, old) || s.connects(t, "db-0", alone) != nil {
				t.Error("the new CA does not take the old one's place")
			}
			s.node.podsOnce(t, "db", 2)
		})
	}
}

func (s *site) patchAuthority(t *testing.T, cluster, changes string) {
	t.Helper()
	home := *s.place
	home.namespace = s.home
	home.patch(t, "secrets", agent.AuthoritySecret(s.namespace, cluster), changes)
}

// TestMySQLClusterRotatesItsCA asks for a new CA, with time for clients until they have had it.
func TestMySQLClusterRotatesItsCA(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	old := s.bundled(t, "db", 1)

	s.asks(t, "db", map[string]string{mysqlcluster.AnnotationRotate: "now"})
	s.rotation(t, "db", "InvalidRequest", `rotate-ca-before="now" is not a time such as`)
	s.asks(t, "db", map[string]string{mysqlcluster.AnnotationRotate: s.after(t, old).Format(time.RFC3339)})
	both := s.bundled(t, "db", 2)
	s.rotation(t, "db", "WaitingForClients", "db-ca-cert")
	if !bytes.HasSuffix(both, old) || s.connects(t, "db-0", old) != nil || s.connects(t, "db-1", both) != nil {
		t.Error("a client that knows the old CA, or both, is refused")
	}

	t.Log("clients have had their time")
	s.asks(t, "db", map[string]string{mysqlcluster.AnnotationOverlap: "0s"})
	alone := s.bundled(t, "db", 1)
	for _, bundle := range [][]byte{alone, both} {
		if err := s.connects(t, "db-0", bundle); err != nil {
			t.Errorf("a client that knows the new CA is refused: %v", err)
		}
	}
	if s.connects(t, "db-0", old) == nil {
		t.Error("the members show a certificate of the old CA")
	}
	s.settled(t, "db")
	s.rotation(t, "db", "", "")
	s.node.podsOnce(t, "db", 2)

	t.Log("asked for once, it is done once")
	s.remove(t, "pods", "db-1")
	s.comesAgain(t, "db", "db-1")
	s.settled(t, "db")
	same(t, s.bundled(t, "db", 1), alone)
}

// after is now, once that is later than a CA in whole seconds.
func (s *site) after(t *testing.T, bundle []byte) time.Time {
	t.Helper()
	held, err := pki.ReadCertificates(bundle)
	if err != nil {
		t.Fatal(err)
	}
	made := held[0].NotBefore.Add(time.Hour)
	soon(t, func(context.Context) string {
		if time.Since(made) < 2*time.Second {
			return "the CA is too young"
		}
		return ""
	})
	return time.Now().UTC()
}

// rotation waits until a cluster says this of its CA; nothing for an empty reason.
func (s *site) rotation(t *testing.T, cluster, reason, message string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		found, err := s.cluster(ctx, cluster)
		if err != nil {
			return err.Error()
		}
		condition := meta.FindStatusCondition(found.Status.Conditions, "CertificateRotation")
		if condition == nil && reason == "" || condition != nil && condition.Reason == reason && strings.Contains(condition.Message, message) {
			return ""
		}
		return fmt.Sprintf("the condition is %+v, want %q", condition, reason)
	})
}
