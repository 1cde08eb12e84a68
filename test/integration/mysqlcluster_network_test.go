package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMySQLClusterNetwork sets, changes and removes who may reach a cluster.
func TestMySQLClusterNetwork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	if _, err := s.of("networkpolicies").Get(t.Context(), "db", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a policy that the spec does not ask for: %v", err)
	}
	const (
		members  = `{"podSelector":{"matchLabels":{"app.kubernetes.io/instance":"db","app.kubernetes.io/managed-by":"mysql-operator","app.kubernetes.io/name":"mysql"}}}`
		backups  = `{"podSelector":{"matchLabels":{"app.kubernetes.io/instance":"db","app.kubernetes.io/managed-by":"mysql-operator","app.kubernetes.io/name":"mysql-backup"}}}`
		operator = `{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"operators"}},"podSelector":{}}`
		agents   = `{"from":[` + members + `,` + operator + `],"ports":[{"port":9443,"protocol":"TCP"}]}`
		closed   = `[{"from":[` + members + `,` + backups + `,{"podSelector":{"matchLabels":{"app":"shop"}}}],"ports":[{"port":3306,"protocol":"TCP"}]},` + agents + `]`
	)
	s.apply(t, "db", "secret: root, network: {}")
	s.lets(t, `[{"ports":[{"port":3306,"protocol":"TCP"}]},`+agents+`]`)
	s.apply(t, "db", "secret: root, network: {allowFrom: [{podLabels: {app: shop}}]}")
	s.lets(t, closed)
	t.Log("changed or deleted by hand it is put back")
	s.patch(t, "networkpolicies", "db", `{"spec":{"ingress":[{}]}}`)
	s.lets(t, closed)
	s.remove(t, "networkpolicies", "db")
	s.lets(t, closed)
	t.Log("without spec.network it lets everybody in")
	s.apply(t, "db", "secret: root")
	s.lets(t, `[{}]`)
	s.settled(t, "db")
}

// lets waits until the policy of db has these rules.
func (s *site) lets(t *testing.T, want string) {
	t.Helper()
	soon(t, func(ctx context.Context) string {
		found, err := s.of("networkpolicies").Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		spec, _ := found.Object["spec"].(map[string]any)
		got, err := json.Marshal(spec["ingress"])
		if err != nil {
			return err.Error()
		}
		if string(got) != want {
			return fmt.Sprintf("it lets in %s, want %s", got, want)
		}
		return ""
	})
}
