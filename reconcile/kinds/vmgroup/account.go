package vmgroup

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// SecretName is the Secret with the account. The operator reads it in the group's namespace first. Then it reads the one in its own
// namespace, for namespaces that may use the operator's account. If there is none, the operator's environment has the same keys.
const SecretName = "vc-creds"

// The keys of the Secret.
const (
	keyHost        = "VC_HOST"
	keyUser        = "VC_USER"
	keyPassword    = "VC_PASS"
	keyAuthorities = "VC_CA"
	keyInsecure    = "VC_INSECURE"
	keyDatacenter  = "VC_DATACENTER"
	keyFolder      = "VC_FOLDER"
	keyPool        = "VC_POOL"
	keyDatastore   = "VC_DATASTORE"
)

// secretLife is how long the operator uses a Secret without reading it again: groups at rest need it twice a minute.
const secretLife = time.Minute

// access is an account, and where to create machines if the group does not specify it.
type access struct {
	account vcenter.Account
	place   vcenter.Place
}

// cachedAccess is the content of a Secret.
type cachedAccess struct {
	access
	// from is the Secret's namespace; empty for the operator's environment.
	from string
	at   time.Time
}

// accessFrom reads an access; missing has the keys without a value.
func accessFrom(value func(key string) string) (found access, missing []string) {
	get := func(key string) string { return strings.TrimSpace(value(key)) }
	found.account = vcenter.Account{
		Host: get(keyHost), User: get(keyUser), Password: strings.TrimRight(value(keyPassword), "\r\n"),
		Authorities: get(keyAuthorities), Insecure: strings.EqualFold(get(keyInsecure), "true"),
	}
	found.place = vcenter.Place{Datacenter: get(keyDatacenter), Folder: get(keyFolder), ResourcePool: get(keyPool), Datastore: get(keyDatastore)}
	for _, key := range []string{keyHost, keyUser, keyPassword} {
		if value(key) == "" {
			missing = append(missing, key)
		}
	}
	return found, missing
}

// groupOf returns the group to ask the vCenter about.
func groupOf(group v1alpha1.VmGroup, found access) vcenter.Group {
	spec, leaving := group.Spec, int32(0)
	if group.DeletionTimestamp != nil {
		leaving = max(spec.Replicas, 1)
		if running := group.Status.CurrentReplicas; running != nil {
			leaving = max(leaving, *running)
		}
	}
	return vcenter.Group{
		Account: found.account,
		Place: vcenter.Place{
			Datacenter: cmp.Or(spec.Datacenter, found.place.Datacenter), Folder: cmp.Or(spec.Folder, found.place.Folder),
			ResourcePool: cmp.Or(spec.ResourcePool, found.place.ResourcePool), Datastore: cmp.Or(spec.Datastore, found.place.Datastore),
		},
		Folder: folderName(group.Namespace, group.Name), UID: string(group.UID), Template: spec.Template, DeletingMachines: leaving,
	}
}

// access finds the account for a group: from memory if it is recent, else from the Secrets, else from the environment.
func (r *reconciler) access(ctx context.Context, group v1alpha1.VmGroup) (cachedAccess, *report.Problem, error) {
	found, wrong, err := r.found(ctx, group.Namespace)
	if group.DeletionTimestamp == nil || err != nil && !apierrors.IsForbidden(err) {
		return found, wrong, err
	}
	var now *cachedAccess
	if wrong == nil && err == nil {
		now = &found
	}
	if chosen := accessWhileDeleting(group.Namespace, r.usedBy(keyOf(group)), now); chosen != nil {
		return *chosen, nil, nil
	}
	return cachedAccess{}, wrong, err
}

// accessWhileDeleting returns the account for a group that is being deleted. It is the one with which the operator last saw the machines,
// until the group's own namespace has another Secret. When a namespace is deleted, its Secret is often deleted first, and the operator's
// own account is a different one. used and found are nil if there is none.
func accessWhileDeleting(namespace string, used, found *cachedAccess) *cachedAccess {
	if used == nil || found != nil && (found.from == namespace || used.from != namespace) {
		return found
	}
	return used
}

// found finds the account for the groups of a namespace.
func (r *reconciler) found(ctx context.Context, namespace string) (cachedAccess, *report.Problem, error) {
	r.mu.Lock()
	last, remembered := r.accounts[namespace]
	r.mu.Unlock()
	if remembered && r.now().Sub(last.at) < secretLife {
		return last, nil, nil
	}
	found, wrong, err := r.look(ctx, namespace)
	if wrong != nil || err != nil {
		return cachedAccess{}, wrong, err
	}
	found.at = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accounts[namespace] = found
	return found, nil, nil
}

// forgetAccount makes the next pass read the Secret again: the vCenter does not accept its content.
func (r *reconciler) forgetAccount(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.accounts, namespace)
}

// rememberAccess records the account with which the operator saw a group's machines.
func (r *reconciler) rememberAccess(key types.NamespacedName, found cachedAccess) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used[key] = found
}

func (r *reconciler) usedBy(key types.NamespacedName) *cachedAccess {
	r.mu.Lock()
	defer r.mu.Unlock()
	if used, is := r.used[key]; is {
		return &used
	}
	return nil
}

func (r *reconciler) look(ctx context.Context, namespace string) (cachedAccess, *report.Problem, error) {
	var hidden error
	for _, place := range r.settings.places(namespace) {
		found, missing, err := r.accountOf(ctx, place)
		switch {
		case apierrors.IsForbidden(err) && place != namespace:
			hidden = err // the operator may have permissions in some namespaces only
			continue
		case apierrors.IsNotFound(err):
			continue
		case err != nil || missing != nil:
			return cachedAccess{}, missing, err
		case place != r.settings.Namespace && !r.settings.mayReach(found.account.Host):
			return cachedAccess{}, hostNotAllowed(namespace), nil
		}
		return cachedAccess{access: found, from: place}, nil, nil
	}
	if !r.settings.sharesWith(namespace) {
		return cachedAccess{}, accountNotShared(namespace), nil
	}
	found, missing := accessFrom(r.settings.Environment)
	if len(missing) > 0 {
		return cachedAccess{}, noAccount(namespace, r.settings.Namespace, hidden), nil
	}
	return cachedAccess{access: found}, nil, nil
}

// accountOf reads the account in a namespace's Secret.
func (r *reconciler) accountOf(ctx context.Context, place string) (access, *report.Problem, error) {
	object, err := r.reader.Get(ctx, secrets(), place, SecretName)
	if err != nil {
		return access{}, nil, err
	}
	var secret corev1.Secret
	if err := schema.Decode(object, &secret); err != nil {
		return access{}, nil, err
	}
	found, missing := accessFrom(func(key string) string { return string(secret.Data[key]) })
	if len(missing) > 0 {
		return access{}, &report.Problem{Reason: reasonCredentialsMissing, Message: fmt.Sprintf("Secret %s in namespace %s has no %s: add it", SecretName, place, strings.Join(missing, ", "))}, nil
	}
	return found, nil, nil
}

// noAccount returns the problem that the groups of a namespace have no account. hidden is the error of reading the Secret in the operator's
// own namespace; nil if that Secret does not exist.
func noAccount(namespace, own string, hidden error) *report.Problem {
	command := createSecretCommand(namespace)
	if hidden != nil {
		return &report.Problem{Reason: reasonCredentialsMissing, Message: fmt.Sprintf("there is no Secret %s in namespace %s, and the operator may not read that of namespace %s (%v): apply what mysql-operator manifests rbac prints with the operator's --kinds and --namespaces, or: %s", SecretName, namespace, own, hidden, command)}
	}
	return &report.Problem{Reason: reasonCredentialsMissing, Message: fmt.Sprintf("there is no Secret %s in namespace %s or the operator's: %s", SecretName, namespace, command)}
}
