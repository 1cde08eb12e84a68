package vmgroup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

func TestAccess(t *testing.T) {
	t.Parallel()
	data := map[string]string{"VC_HOST": " 10.0.0.1\n", "VC_USER": "u", "VC_PASS": " p w\n", "VC_INSECURE": "True", "VC_DATACENTER": "DC0", "VC_FOLDER": "f", "VC_POOL": "p", "VC_DATASTORE": "d", "VC_CA": "pem"}
	found, missing := accessFrom(func(key string) string { return data[key] })
	want := vcenter.Account{Host: "10.0.0.1", User: "u", Password: " p w", Insecure: true, Authorities: "pem"}
	if found.account != want || len(missing) > 0 {
		t.Errorf("account of %s, missing %v", found.account, missing)
	}
	group := groupOf(web(func(g *v1alpha1.VmGroup) { g.Spec.Folder = "mine" }), found)
	if diff := cmp.Diff(vcenter.Place{Datacenter: "DC0", Folder: "mine", ResourcePool: "p", Datastore: "d"}, group.Place); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
	if group.DeletingMachines != 0 {
		t.Errorf("the operator searches everywhere for the machines of a group that is not being deleted")
	}
	deleted := metav1.Now()
	if leaving := groupOf(web(was("/p", 5), func(g *v1alpha1.VmGroup) { g.DeletionTimestamp = &deleted }), found).DeletingMachines; leaving != 5 {
		t.Errorf("the operator searches for %d machines, want 5", leaving)
	}
	_, missing = accessFrom(func(key string) string { return map[string]string{"VC_USER": "u"}[key] })
	if !slices.Equal(missing, []string{"VC_HOST", "VC_PASS"}) {
		t.Errorf("missing %v", missing)
	}
}

// TestTheAccountOfAGroupThatIsDeleted: when a namespace is deleted, its Secret is often deleted first. The operator's own account must not
// be used for what the namespace's account created.
func TestTheAccountOfAGroupThatIsDeleted(t *testing.T) {
	t.Parallel()
	of := func(from, host string) *cachedAccess {
		return &cachedAccess{from: from, access: access{account: vcenter.Account{Host: host}}}
	}
	for story, test := range map[string]struct {
		used, found *cachedAccess
		want        string
	}{
		"the Secret is there":                        {of("shop", "a"), of("shop", "a"), "a"},
		"the Secret was changed":                     {of("shop", "a"), of("shop", "b"), "b"},
		"the Secret is gone, the operator has one":   {of("shop", "a"), of("operator", "b"), "a"},
		"the Secret is gone, there is a variable":    {of("shop", "a"), of("", "b"), "a"},
		"nothing is left":                            {of("shop", "a"), nil, "a"},
		"the operator's was used, and changed":       {of("operator", "a"), of("operator", "b"), "b"},
		"the operator's was used, and is gone":       {of("operator", "a"), nil, "a"},
		"there is a Secret in the namespace now":     {of("operator", "a"), of("shop", "b"), "b"},
		"the operator was started a moment ago":      {nil, of("operator", "b"), "b"},
		"it was started a moment ago, and no access": {nil, nil, ""},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			host := ""
			if kept := accessWhileDeleting("shop", test.used, test.found); kept != nil {
				host = kept.account.Host
			}
			if host != test.want {
				t.Errorf("the account is of %q, want %q", host, test.want)
			}
		})
	}
}

// TestWhereThereIsNoAccount: if the operator may not read a Secret, the message does not claim that it does not exist.
func TestWhereThereIsNoAccount(t *testing.T) {
	t.Parallel()
	if said := noAccount("shop", "operators", nil).Message; !strings.HasPrefix(said, "there is no Secret vc-creds in namespace shop or the operator's: kubectl -n shop create secret generic vc-creds ") {
		t.Errorf("it says %q", said)
	}
	said := noAccount("shop", "operators", errors.New("secrets is forbidden")).Message
	for _, words := range []string{"no Secret vc-creds in namespace shop", "may not read that of namespace operators (secrets is forbidden)", "manifests rbac", "kubectl -n shop create secret"} {
		if !strings.Contains(said, words) {
			t.Errorf("it says %q, and not %q", said, words)
		}
	}
}

// TestNoAccountOutlastsItsGroups: when a group is gone, the operator forgets the content of its namespace's Secret. Other groups there read
// it again.
func TestNoAccountOutlastsItsGroups(t *testing.T) {
	t.Parallel()
	r := &reconciler{accounts: map[string]cachedAccess{"shop": {from: "shop"}, "office": {}}, used: map[types.NamespacedName]cachedAccess{}}
	group := types.NamespacedName{Namespace: "shop", Name: "web"}
	r.rememberAccess(group, cachedAccess{from: "shop"})
	r.Forget(group)
	if _, found := r.accounts["shop"]; found || r.usedBy(group) != nil {
		t.Errorf("the account of namespace shop is kept")
	}
	if _, found := r.accounts["office"]; !found {
		t.Errorf("that of another namespace is not")
	}
}
