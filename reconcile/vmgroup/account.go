package vmgroup

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-operator/mysql-operator/reconcile/vmgroup/vcenter"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

// SecretName is the Secret with the account: in the group's namespace, else in the operator's. Where there is none the operator's environment
// has the same keys.
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

// secretLife is for how long a Secret is taken for what it was: groups at rest ask for it twice a minute.
const secretLife = time.Minute

// access is an account, and where machines are made if the group does not say.
type access struct {
	account vcenter.Account
	place   vcenter.Place
}

// known is what a Secret said.
type known struct {
	access
	at time.Time
}

// accessFrom reads an access; missing are the keys that are not there.
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

// groupOf is what the vCenter is asked about.
func groupOf(group v1alpha1.VmGroup, found access) vcenter.Group {
	spec := group.Spec
	return vcenter.Group{
		Account: found.account,
		Place: vcenter.Place{
			Datacenter: cmp.Or(spec.Datacenter, found.place.Datacenter), Folder: cmp.Or(spec.Folder, found.place.Folder),
			ResourcePool: cmp.Or(spec.ResourcePool, found.place.ResourcePool), Datastore: cmp.Or(spec.Datastore, found.place.Datastore),
		},
		Folder: folderName(group.Namespace, group.Name), UID: string(group.UID),
	}
}

// access finds the account for a group: what it has found a moment ago, else by the Secrets, else by the environment. A group that is being deleted
// may use what it found last, however long ago: with a namespace the Secret often goes first.
func (r *reconciler) access(ctx context.Context, group v1alpha1.VmGroup) (access, *problem, error) {
	r.mu.Lock()
	last, remembered := r.accounts[group.Namespace]
	r.mu.Unlock()
	if remembered && r.now().Sub(last.at) < secretLife {
		return last.access, nil, nil
	}
	found, wrong, err := r.look(ctx, group.Namespace)
	if err != nil {
		return access{}, nil, err
	}
	if wrong != nil && remembered && group.DeletionTimestamp != nil {
		return last.access, nil, nil
	}
	if wrong != nil {
		return access{}, wrong, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accounts[group.Namespace] = known{found, r.now()}
	return found, nil, nil
}

// mistrust has the Secret read again: the vCenter does not accept what it said.
func (r *reconciler) mistrust(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.accounts[namespace]
	last.at = time.Time{}
	r.accounts[namespace] = last
}

func (r *reconciler) look(ctx context.Context, namespace string) (access, *problem, error) {
	for _, place := range []string{namespace, r.settings.Namespace} {
		if place == "" {
			continue
		}
		object, err := r.api.Get(ctx, secrets(), place, SecretName)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && place != namespace {
			continue // rights may be for some namespaces only
		}
		if err != nil {
			return access{}, nil, err
		}
		var secret corev1.Secret
		if err := schema.Decode(object, &secret); err != nil {
			return access{}, nil, err
		}
		found, missing := accessFrom(func(key string) string { return string(secret.Data[key]) })
		if len(missing) > 0 {
			return access{}, &problem{reasonCredentialsMissing, fmt.Sprintf("Secret %s in namespace %s has no %s: add it", SecretName, place, strings.Join(missing, ", "))}, nil
		}
		return found, nil, nil
	}
	found, missing := accessFrom(r.settings.Environment)
	if len(missing) > 0 {
		command := fmt.Sprintf("kubectl -n %s create secret generic %s --from-literal=%s=… --from-literal=%s=… --from-literal=%s=…", namespace, SecretName, keyUser, keyPassword, keyHost)
		return access{}, &problem{reasonCredentialsMissing, fmt.Sprintf("there is no Secret %s in namespace %s or the operator's: %s", SecretName, namespace, command)}, nil
	}
	return found, nil, nil
}
