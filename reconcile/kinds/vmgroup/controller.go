// Package vmgroup reconciles VmGroup resources: a number of like virtual machines in a vCenter, in a folder of their own.
//
// A pass observes (observe.go: the account, and what there is in the vCenter), decides (decide.go, sort.go, pure), acts (act.go) and
// reports (status.go). The vCenter is spoken to by a helper process (vcenter.Process, vsphere).
//
// Nothing is remembered that a killed operator would take along. A machine's name follows from its number, and its mark (the group's UID)
// is part of what it is cloned with: a clone that is begun twice is made once, because a folder holds no two machines of one name. A
// finalizer is on the group before anything is made for it.
package vmgroup

import (
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// Settings are what the operator gives the kind.
type Settings struct {
	// VCenter is who speaks to vCenters.
	VCenter vcenter.API
	// Namespace is the operator's own, whose Secret is for groups in namespaces without one. Empty means there is none.
	Namespace string
	// LendTo are the namespaces whose groups may use the operator's own account, that of its Secret or environment; "all" for every one.
	// Groups of its own namespace always may.
	LendTo []string
	// Hosts are the vCenters, as HOST or HOST:PORT, that Secrets of other namespaces than the operator's may lead to; none for any.
	Hosts []string
	// Environment reads the operator's environment variables, which are for where there is no Secret.
	Environment func(name string) string
	// Pace is how soon groups are looked at again; the zero value means DefaultPace.
	Pace Pace
}

// Pace is how soon groups are looked at again: no vCenter tells what others do to machines.
type Pace struct {
	// Step is for a group on its way, Rest for one at rest, Help for one that waits for a person.
	Step, Rest, Help time.Duration
}

// DefaultPace keeps a vCenter with a hundred groups at rest below ten requests a second.
func DefaultPace() Pace {
	return Pace{Step: 2 * time.Second, Rest: 30 * time.Second, Help: 15 * time.Second}
}

// Controller is the kind as the engine knows it. All groups share one API: it outlives terms as leader.
func Controller(kind schema.Kind, settings Settings) reconcile.Controller {
	if settings.Pace == (Pace{}) {
		settings.Pace = DefaultPace()
	}
	secret := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{SecretName}, Verbs: []string{"get"}}
	return reconcile.Controller{
		Kind:      kind,
		Childless: true, // what it makes is in a vCenter
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{kind.Group}, Resources: []string{kind.Plural}, Verbs: []string{"patch"}},
			secret,
		},
		OwnRules: []rbacv1.PolicyRule{secret},
		New: func(api *reconcile.Client) reconcile.Reconciler {
			return &reconciler{
				api: api, kind: kind, settings: settings, now: time.Now,
				stopping: map[types.NamespacedName]map[string]time.Time{}, ending: map[types.NamespacedName]time.Time{}, accounts: map[string]known{}, used: map[types.NamespacedName]known{},
			}
		},
	}
}

// reconciler keeps what can be found out again: since when machines are asked to shut down and groups are being deleted, and what Secrets
// said. What a Secret said that is gone cannot, and is for groups that are being deleted only.
type reconciler struct {
	api      *reconcile.Client
	kind     schema.Kind
	settings Settings
	now      func() time.Time

	mu       sync.Mutex
	stopping map[types.NamespacedName]map[string]time.Time
	ending   map[types.NamespacedName]time.Time
	// accounts are those of the namespaces; used is the one with which a group's machines were seen last.
	accounts map[string]known
	used     map[types.NamespacedName]known
}

// Forget is told that a group is gone. It may have been the last of its namespace; if not, the others read the Secret again.
func (r *reconciler) Forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.stopping, key)
	delete(r.ending, key)
	delete(r.used, key)
	delete(r.accounts, key.Namespace)
}

func keyOf(group v1alpha1.VmGroup) types.NamespacedName {
	return types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
}

func secrets() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}
