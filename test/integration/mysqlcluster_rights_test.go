package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// butNot are rules without one verb on one resource.
func butNot(rules []rbacv1.PolicyRule, verb, resource string) []rbacv1.PolicyRule {
	kept := []rbacv1.PolicyRule{}
	for _, rule := range rules {
		for _, one := range rule.Resources {
			single := *rule.DeepCopy()
			single.Resources = []string{one}
			if one == resource {
				single.Verbs = slices.DeleteFunc(single.Verbs, func(granted string) bool { return granted == verb })
			}
			if len(single.Verbs) > 0 {
				kept = append(kept, single)
			}
		}
	}
	return kept
}

// TestMySQLClusterWithoutARight lacks one right of those that the manifests grant, and gets it later.
func TestMySQLClusterWithoutARight(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 0)
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct{ verb, resource, told string }{
		"read Secrets":          {"get", "secrets", `cannot get resource "secrets" in API group "" in the namespace`},
		"make Secrets":          {"create", "secrets", `cannot create resource "secrets"`},
		"apply Services":        {"patch", "services", `cannot patch resource "services"`},
		"make Services":         {"create", "services", `cannot create resource "services"`},
		"apply ServiceAccounts": {"patch", "serviceaccounts", `cannot patch resource "serviceaccounts"`},
		"make StatefulSets":     {"create", "statefulsets", `cannot create resource "statefulsets" in API group "apps"`},
		"make budgets":          {"patch", "poddisruptionbudgets", `cannot patch resource "poddisruptionbudgets" in API group "policy"`},
		"look at volumes":       {"get", "persistentvolumeclaims", `cannot get resource "persistentvolumeclaims"`},
		"label Pods":            {"patch", "pods", `cannot patch resource "pods"`},
	} {
		stories[name] = func(t *testing.T) {
			s := newSite(t)
			s.grant(t, butNot(operatorRules(), test.verb, test.resource))
			s.operate(t, nil)
			s.apply(t, "db", "secret: root")
			s.stalled(t, s.until(t, "db", "Forbidden"), test.told, s.namespace, "mysql-operator manifests rbac")
			s.grant(t, operatorRules())
			s.settled(t, "db")
		}
	}
	stories["write the status"] = func(t *testing.T) {
		s := newSite(t)
		s.grant(t, butNot(operatorRules(), "patch", "mysqlclusters/status"))
		o := s.operate(t, nil)
		s.apply(t, "db", "secret: root")
		soon(t, func(context.Context) string {
			for _, line := range o.log.all() {
				if strings.Contains(line, "cannot patch resource") && strings.Contains(line, "mysqlclusters/status") {
					return ""
				}
			}
			return "the log does not say which right is missing"
		})
		s.grant(t, operatorRules())
		s.settled(t, "db")
	}
	stories["tell events"] = func(t *testing.T) {
		s := newSite(t)
		s.grant(t, butNot(butNot(operatorRules(), "create", "events"), "list", "events"))
		s.operate(t, nil)
		s.apply(t, "db", "secret: root")
		s.settled(t, "db")
	}
	sideBySide(t, 3, stories)
}

// TestMySQLClusterWithoutRoom meets what refuses Pods, volumes and other children to anybody.
func TestMySQLClusterWithoutRoom(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 2)
	stories := map[string]func(*testing.T){}
	for name, test := range map[string]struct {
		hard, reason string
		told         []string
	}{
		"no Pods":         {"pods: 0", "PodsNotCreated", []string{"Kubernetes does not create Pod db-0: ", "exceeded quota: few", "Kubernetes tries again"}},
		"one Pod too few": {"pods: 1", "PodsNotCreated", []string{"Kubernetes does not create Pod db-", "exceeded quota: few", "used: pods=1"}},
		"no volumes":      {"persistentvolumeclaims: 0", "PodsNotCreated", []string{"Kubernetes does not create Pod db-0: ", "exceeded quota: few"}},
		"no storage":      {"requests.storage: 1500Mi", "PodsNotCreated", []string{"Kubernetes does not create Pod db-", "exceeded quota: few", "requests.storage=1Gi"}},
		"no memory":       {"limits.memory: 10Mi", "PodsNotCreated", []string{"Kubernetes does not create Pod db-0: ", "few"}},
		"no Services":     {"services: 1", "Forbidden", []string{"services", "exceeded quota: few"}},
		"no Secrets":      {"secrets: 1", "Forbidden", []string{"secrets", "exceeded quota: few"}},
	} {
		stories[name] = func(t *testing.T) {
			s := newSite(t)
			s.quota(t, test.hard)
			s.operate(t, nil)
			s.apply(t, "db", "secret: root")
			s.stalled(t, s.until(t, "db", test.reason), test.told...)
			s.remove(t, "resourcequotas", "few")
			if test.reason == "PodsNotCreated" {
				s.nudged(t, "db", "AllMembersReady")
			}
			s.settled(t, "db")
		}
	}
	stories["the Pod of another client"] = func(t *testing.T) {
		s := newSite(t)
		made := object(t, "{apiVersion: v1, kind: Pod, metadata: {name: db-0}, spec: {containers: [{name: c, image: none}]}}")
		before, err := s.of("pods").Create(t.Context(), made, metav1.CreateOptions{FieldManager: "someone"})
		if err != nil {
			t.Fatal(err)
		}
		s.operate(t, nil)
		s.apply(t, "db", "secret: root")
		s.stalled(t, s.until(t, "db", "ForeignObject"), "pods "+s.namespace+"/db-0 exists already and was not made by this operator")
		s.unchanged(t, "pods", before)
		s.remove(t, "pods", "db-0")
		s.settled(t, "db")
	}
	sideBySide(t, 3, stories)
}

// nudged waits for a reason, and touches the cluster's StatefulSet now and then: its controller's own patience grows to minutes.
func (s *site) nudged(t *testing.T, cluster, reason string) {
	t.Helper()
	last := time.Now()
	soon(t, func(ctx context.Context) string {
		found, err := s.cluster(ctx, cluster)
		if err == nil && why(found).Reason == reason {
			return ""
		}
		if time.Since(last) > 2*time.Second {
			last = time.Now()
			s.patch(t, "statefulsets", cluster, fmt.Sprintf(`{"metadata":{"annotations":{"nudged":%q}}}`, last))
		}
		return fmt.Sprintf("cluster %s is %s: %s (%v)", cluster, why(found).Reason, why(found).Message, err)
	})
}

// quota limits the site, and waits until Kubernetes enforces it.
func (s *site) quota(t *testing.T, hard string) {
	t.Helper()
	made := object(t, fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {%s}}}", hard))
	if _, err := s.of("resourcequotas").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	soon(t, func(ctx context.Context) string {
		found, err := s.of("resourcequotas").Get(ctx, "few", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		status, _ := found.Object["status"].(map[string]any)
		if used, ok := status["used"].(map[string]any); !ok || len(slices.Collect(maps.Keys(used))) == 0 {
			return "Kubernetes has not counted yet what is used"
		}
		return ""
	})
}
