// Package vmgroup reconciles VmGroup resources: a number of identical virtual machines in a vCenter, in a separate folder.
//
// A pass observes, decides, acts (act.go) and reports (status.go). It observes the account (account.go) and the machines in the vCenter.
// decide.go, sort.go and end.go decide; they are pure. A helper process connects to the vCenter (vcenter.Process, vsphere).
//
// A killed operator loses nothing that matters. A machine's name follows from its number, and its mark (the group's UID) is part of the
// clone's specification. If two operators start the same clone, the vCenter creates one machine, because a folder has no two machines of
// one name. The operator adds a finalizer to the group before it creates anything for it.
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

// Settings has what the operator gives the kind.
type Settings struct {
	// VCenter connects to vCenters.
	VCenter vcenter.API
	// Namespace is the operator's own namespace. Its Secret is for groups in namespaces without a Secret. Empty means there is none.
	Namespace string
	// SharedWith lists the namespaces whose groups may use the operator's own account, from its Secret or environment; "all" means every
	// namespace. Groups of the operator's own namespace always may.
	SharedWith []string
	// Hosts lists the vCenters, as HOST or HOST:PORT, that Secrets in other namespaces may name; empty allows any.
	Hosts []string
	// Environment reads the operator's environment variables, which are used if there is no Secret.
	Environment func(name string) string
	// Pace is the time between passes over a group; the zero value means DefaultPace.
	Pace Pace
}

// Pace is the time between passes over a group. No vCenter notifies the operator of changes to machines.
type Pace struct {
	// Step is for a group in progress, Rest for a group at rest, Help for a group that waits for a user.
	Step, Rest, Stalled time.Duration
}

// DefaultPace limits a hundred groups at rest to less than ten requests a second to a vCenter.
func DefaultPace() Pace {
	return Pace{Step: 2 * time.Second, Rest: 30 * time.Second, Stalled: 15 * time.Second}
}

// Controller describes the kind to the engine. All groups share one vcenter.API, which continues when the operator loses and regains
// leadership.
func Controller(kind schema.Kind, settings Settings) reconcile.Controller {
	if settings.Pace == (Pace{}) {
		settings.Pace = DefaultPace()
	}
	secret := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{SecretName}, Verbs: []string{"get"}}
	return reconcile.Controller{
		Kind:      kind,
		Childless: true, // it creates machines in a vCenter only
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{kind.Group}, Resources: []string{kind.Plural}, Verbs: []string{"patch"}},
			secret,
		},
		OwnRules: []rbacv1.PolicyRule{secret},
		New: func(reader *reconcile.Reader) reconcile.Reconciler {
			return &reconciler{
				reader: reader, kind: kind, settings: settings, now: time.Now,
				stopping: map[types.NamespacedName]map[string]time.Time{}, ending: map[types.NamespacedName]time.Time{}, accounts: map[string]cachedAccess{}, used: map[types.NamespacedName]cachedAccess{},
			}
		},
	}
}

var _ reconcile.Forgetter = (*reconciler)(nil) // the engine looks for it when it runs

// reconciler keeps state that an operator can find out again: since when machines are shutting down and groups are being deleted, and the
// content of Secrets. Only the content of a deleted Secret is lost; it is needed only for groups that are being deleted.
type reconciler struct {
	reader   *reconcile.Reader
	kind     schema.Kind
	settings Settings
	now      func() time.Time

	mu       sync.Mutex
	stopping map[types.NamespacedName]map[string]time.Time
	ending   map[types.NamespacedName]time.Time
	// accounts has the accounts by namespace. used has the account with which the operator last saw a group's machines.
	accounts map[string]cachedAccess
	used     map[types.NamespacedName]cachedAccess
}

// Forget removes the state of a group that is gone. It removes the namespace's account too: other groups there read the Secret again.
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
