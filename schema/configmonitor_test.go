package schema

import (
	"fmt"
	"testing"

	magalixv1 "github.com/mysql-operator/mysql-operator/schema/magalix/v1"
)

// seedMonitor is the document of the founding lab, letter for letter. The API server must always accept it.
const seedMonitor = `
apiVersion: magalix.com/v1
kind: ConfigMonitor
metadata:
  name: flakapp-config-monitor
spec:
  configmap: flaskapp-config
  podSelector:
    app: frontend
`

func monitor(spec string) string {
	return fmt.Sprintf("apiVersion: magalix.com/v1\nkind: ConfigMonitor\nmetadata: {name: m}\nspec: {%s}\n", spec)
}

func TestSeedMonitorApplies(t *testing.T) {
	t.Parallel()
	stored, err := newAPIServer(t, "ConfigMonitor").create(seedMonitor)
	if err != nil {
		t.Fatalf("the seed's manifest is refused: %v", err)
	}
	typed := magalixv1.ConfigMonitor{}
	if err := DecodeStrict(stored, &typed); err != nil {
		t.Fatal(err)
	}
	if typed.Spec.ConfigMapName() != "flaskapp-config" || typed.Spec.PodSelector["app"] != "frontend" {
		t.Errorf("read as %+v", typed.Spec)
	}
}

// TestMonitorDocuments lists what is refused, and with which message. No message means that it is accepted.
func TestMonitorDocuments(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "ConfigMonitor")
	for story, test := range map[string]struct {
		spec string
		told []string
	}{
		"the definition's spelling":   {"configMap: c, podSelector: {app: a}", nil},
		"the example's spelling":      {"configmap: c, podSelector: {app: a}", nil},
		"both, alike":                 {"configMap: c, configmap: c, podSelector: {app: a}", nil},
		"both, different":             {"configMap: c, configmap: d, podSelector: {app: a}", []string{"two spellings of one field"}},
		"none":                        {"podSelector: {app: a}", []string{"spec.configMap is missing"}},
		"a name that cannot be":       {"configMap: A_B, podSelector: {app: a}", []string{"spec.configMap must be the name"}},
		"no selector":                 {"configMap: c", []string{"spec.podSelector: Required value"}},
		"an empty selector":           {"configMap: c, podSelector: {}", []string{"spec.podSelector must name at least one label"}},
		"several labels":              {"configMap: c, podSelector: {app.kubernetes.io/name: a, tier: web}", nil},
		"a label name that cannot be": {"configMap: c, podSelector: {'a b': c}", []string{"spec.podSelector must name labels"}},
		"a value that cannot be":      {"configMap: c, podSelector: {app: 'a b'}", []string{"spec.podSelector values must be label values"}},
		"a label without a value":     {"configMap: c, podSelector: {app: ''}", nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(monitor(test.spec))
			wantRefusal(t, err, test.told...)
		})
	}
}
