package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/archive/destination"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// observeSource finds out what to restore, and whether everything that this takes is there.
func (r Restorer) observeSource(ctx context.Context, cluster v1.MySQLCluster, seen *Observed) error {
	order := orderOf(cluster, r.Image, len(seen.others) > 0)
	if cluster.Spec.FromBackup != "" {
		instance, err := r.instance(ctx, cluster)
		if err != nil {
			return err
		}
		if seen.lacking = notRestorable(cluster, instance, *seen); seen.lacking != nil {
			return nil
		}
		order.Location, order.BackupUID = *instance.Status.Location, string(instance.UID)
		order.Checksum = cmp.Or(order.Checksum, instance.Status.Checksum)
		seen.dataSize, seen.dataVersion = instance.Status.DataSize, instance.Status.ServerVersion
	}
	order.Location = overridden(order.Location, cluster.Spec.Restore)
	lacking, versions, err := r.observeInputs(ctx, cluster.Namespace, order.Location)
	if err != nil || lacking != nil {
		seen.lacking = lacking
		return err
	}
	seen.order, seen.inputs = &order, inputsOf(versions, seen.claim)
	return nil
}

// instance reads the backup that spec.fromBackup names; nil if there is none.
func (r Restorer) instance(ctx context.Context, cluster v1.MySQLCluster) (*v1.MySQLBackupInstance, error) {
	instances := apischema.GroupVersionResource{Group: r.Clusters.Group, Version: r.Clusters.Version, Resource: "mysqlbackupinstances"}
	object, err := r.Reader.Get(ctx, instances, cluster.Namespace, cluster.Spec.FromBackup)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no backup, and no error in looking for one
	}
	if err != nil {
		return nil, err
	}
	found := &v1.MySQLBackupInstance{}
	return found, schema.Decode(object, found)
}

// observeInputs reads what a location names. versions identifies what it finds, so that a change is noticed.
func (r Restorer) observeInputs(ctx context.Context, namespace string, location v1.BackupLocation) (lacking *report.Problem, versions []string, err error) {
	credentials := map[string][]byte{}
	for _, wanted := range needsOf(location) {
		found, err := r.Reader.Get(ctx, children.Secrets(), namespace, wanted.name)
		if apierrors.IsNotFound(err) {
			return &report.Problem{Reason: wanted.reason, Message: fmt.Sprintf("Secret %q, which is needed to read the backup, does not exist in namespace %q; create it, or name another one in spec.restore.%s", wanted.name, namespace, wanted.field), Stalled: true}, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		content, err := children.SecretData(found)
		if err != nil {
			return nil, nil, err
		}
		if wanted.key != "" && len(content[wanted.key]) == 0 {
			return &report.Problem{Reason: wanted.reason, Message: fmt.Sprintf("Secret %q has no value under the key %q, which decrypts the backup; add it, or name another Secret in spec.restore.%s", wanted.name, wanted.key, wanted.field), Stalled: true}, nil, nil
		}
		if wanted.name == location.Secret {
			credentials = content
		}
		versions = append(versions, versionOf(found))
	}
	if found := endpointRefused(location, credentials); found != nil || location.Claim == "" {
		return found, versions, nil
	}
	claim, err := r.Reader.Get(ctx, children.Claims(), namespace, location.Claim)
	if apierrors.IsNotFound(err) {
		return &report.Problem{Reason: protocol.ReasonClaimNotFound, Message: fmt.Sprintf("PersistentVolumeClaim %q, which holds the backup, does not exist in namespace %q; create it, or name another one in spec.restore.claim", location.Claim, namespace), Stalled: true}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return nil, append(versions, string(claim.GetUID())), nil
}

// need is a Secret that a restore needs, the field of spec.restore that names another one, and the key that it must have, if any.
type need struct {
	name, field, key, reason string
}

func needsOf(location v1.BackupLocation) []need {
	return slices.DeleteFunc([]need{
		{location.Secret, "secret", "", protocol.ReasonCredentialsNotFound},
		{location.EncryptionSecret, "encryptionSecret", protocol.KeyIdentity, protocol.ReasonEncryptionKeyNotFound},
	}, func(one need) bool { return one.name == "" })
}

// endpointRefused checks whether credentials may be sent to the server in the URL, so that the operator creates no Pod that would have to
// refuse. The Pod checks again, with the current content of its Secret, and reports other faults of the URL.
func endpointRefused(location v1.BackupLocation, credentials map[string][]byte) *report.Problem {
	err := destination.CheckEndpoint(location.URL, credentials)
	store, ok := errors.AsType[*destination.StoreError](err)
	if !ok || store.Kind != destination.KindEndpoint {
		return nil
	}
	remedy := "name in spec.restore.secret a Secret that has the server's URL under the key \"endpoint\""
	if location.Secret != "" {
		remedy = fmt.Sprintf("put the server's URL under the key \"endpoint\" of Secret %q, or ", location.Secret) + remedy
	}
	return &report.Problem{Reason: protocol.ReasonDestinationRefused, Message: fmt.Sprintf("%v; if you trust that server, %s", err, remedy), Stalled: true}
}

func versionOf(object *unstructured.Unstructured) string {
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}
