package integration

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMySQLClusterPasswords gives clusters every kind of Secret that a user may write.
func TestMySQLClusterPasswords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	data := func(password string) map[string]any {
		return map[string]any{"data": map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))}}
	}

	refused := map[string]struct {
		content map[string]any
		told    string
	}{
		"no-key":       {map[string]any{"stringData": map[string]any{"pasword": "secret"}}, `has no key "password"; put root's password there`},
		"empty":        {data(""), `has an empty value under the key "password"`},
		"only-newline": {data("\n"), `has an empty value under the key "password"`},
		"nul":          {data("a\x00b"), "NUL character, which MySQL does not accept"},
		"too-long":     {data(strings.Repeat("x", 300)), "more than 256 bytes, which MySQL does not accept"},
		"no-text":      {data("\xff\xfe"), "not UTF-8"},
	}
	stories := map[string]func(*testing.T){
		"no Secret": func(t *testing.T) {
			s.apply(t, "missing", "secret: later, replicas: 1")
			s.stalled(t, s.until(t, "missing", "SecretNotFound"), `spec.secret: Secret "later" does not exist in namespace "`+s.namespace+`"`, `create it with root's password under the key "password"`)
			s.nothingMade(t, "missing")
			s.password(t, "later", "secret")
			s.ready(t, "missing")
		},
		"another Secret": func(t *testing.T) {
			s.apply(t, "renamed", "secret: nowhere, replicas: 1")
			s.until(t, "renamed", "SecretNotFound")
			s.apply(t, "renamed", "secret: root, replicas: 1")
			s.ready(t, "renamed")
		},
	}
	for name, test := range refused {
		stories[name] = func(t *testing.T) {
			s.content(t, name, test.content)
			s.apply(t, name, "secret: "+name+", replicas: 1")
			s.stalled(t, s.until(t, name, "SecretInvalid"), fmt.Sprintf("spec.secret: Secret %q ", name), test.told)
			s.nothingMade(t, name)
			s.password(t, name, "good")
			s.ready(t, name)
		}
	}
	for name, password := range map[string]string{"unicode": "pässwörd→密码🔑", "quotes": `a'b"c\d;--$(x)%s` + "`", "spaces": " in the middle ", "trailing": "ends with a newline\n", "long": strings.Repeat("ü", 128)} {
		stories[name] = func(t *testing.T) {
			s.content(t, name, data(password))
			s.apply(t, name, "secret: "+name+", replicas: 1")
			s.ready(t, name)
		}
	}
	sideBySide(t, 3, stories)
}

// TestMySQLClusterSecretsReturn deletes a Secret of the cluster's own that a member is about to need. Secrets are not watched, but a
// cluster that is not as it should be looks at them soon.
func TestMySQLClusterSecretsReturn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	s.remove(t, "secrets", "db-tls")
	s.remove(t, "pods", "db-1")
	s.until(t, "db", "MembersNotReady")
	s.settled(t, "db")
}

// TestMySQLClusterDamagedSecrets edits the Secret that members mount, as a user would. The operator derives it again from what it keeps.
func TestMySQLClusterDamagedSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	before := s.ownSecrets(t.Context(), "db")

	s.patch(t, "secrets", "db-tls", `{"data":{"ca.crt":"eA=="}}`)
	s.remove(t, "pods", "db-1")
	s.until(t, "db", "MembersNotReady")
	s.settled(t, "db")
	same(t, s.ownSecrets(t.Context(), "db"), before)
}

// TestMySQLClusterGoesOnWithoutSecrets: the operator cannot read Secrets for a while. It still reconciles members that come back.
func TestMySQLClusterGoesOnWithoutSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root")
	s.settled(t, "db")
	s.grant(t, butNot(operatorRules(), "get", "secrets"))
	s.node.cutOff("db-1", true) // a cluster that is not as it should be looks at its Secrets soon
	s.stalled(t, s.until(t, "db", "Forbidden"), `cannot get resource "secrets"`)

	s.remove(t, "pods", "db-0")
	soon(t, func(ctx context.Context) string {
		cluster, err := s.cluster(ctx, "db")
		if err != nil {
			return err.Error()
		}
		if ever := s.node.podsEver("db")["db-0"]; len(ever) != 2 || cluster.Status.ReadySummary != "1/2" || cluster.Status.Members[0].State != "Writing" {
			return fmt.Sprintf("the primary was made %d times, and the members are %+v", len(ever), cluster.Status.Members)
		}
		return ""
	})
	s.until(t, "db", "Forbidden")
	s.grant(t, operatorRules())
	s.node.cutOff("db-1", false)
	s.settled(t, "db")
}

// nothingMade fails the test if something was made for a cluster that has to wait.
func (s *site) nothingMade(t *testing.T, cluster string) {
	t.Helper()
	for _, what := range childResources() {
		found, err := s.of(what).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + cluster})
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range found.Items {
			t.Errorf("%s %s was made before anything is certain", what, child.GetName())
		}
	}
}

// childResources are what a cluster's children are.
func childResources() []string {
	return []string{"serviceaccounts", "configmaps", "secrets", "services", "poddisruptionbudgets", "networkpolicies", "statefulsets", "pods", "persistentvolumeclaims"}
}
