package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

// userSecret checks the Secret that the user names for root's password; nil if it is valid.
func (r *reconciler) userSecret(ctx context.Context, n children.Names, name string) (*report.Problem, error) {
	found, err := r.reader.Get(ctx, children.Secrets(), n.Namespace, name)
	if apierrors.IsNotFound(err) {
		return &report.Problem{Reason: reasonSecretNotFound, Message: fmt.Sprintf("spec.secret: Secret %q does not exist in namespace %q; create it with root's password under the key %q", name, n.Namespace, agent.PasswordKey), Stalled: true}, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := children.SecretData(found)
	if err != nil {
		return nil, err
	}
	if fault := passwordFault(content); fault != "" {
		return &report.Problem{Reason: reasonSecretInvalid, Message: fmt.Sprintf("spec.secret: Secret %q %s", name, fault), Stalled: true}, nil
	}
	return nil, nil //nolint:nilnil // no problem, and no error in looking for one
}

// maxPassword is the longest password that caching_sha2_password accepts, in bytes (MySQL's MAX_PLAINTEXT_LENGTH).
const maxPassword = 256

// passwordFault says what is wrong with the Secret's content; empty if nothing is.
func passwordFault(content map[string][]byte) string {
	value, present := content[agent.PasswordKey]
	password := agent.RootPassword(value)
	switch {
	case !present:
		return fmt.Sprintf("has no key %q; put root's password there", agent.PasswordKey)
	case password == "":
		return fmt.Sprintf("has an empty value under the key %q; an account without a password is refused", agent.PasswordKey)
	case !utf8.ValidString(password):
		return fmt.Sprintf("holds bytes under the key %q that are not UTF-8, which no client could send as a password", agent.PasswordKey)
	case len(password) > maxPassword:
		return fmt.Sprintf("holds a password of more than %d bytes, which MySQL does not accept", maxPassword)
	}
	for _, char := range password {
		if char == 0 {
			return "holds a password with a NUL character, which MySQL does not accept"
		}
	}
	return ""
}

// newAccounts generates the passwords of the operator's own MySQL accounts.
func newAccounts() map[string][]byte {
	return map[string][]byte{
		mysqld.AgentUser:        newPassword(),
		mysqld.ReplicationUsers: newPassword(),
		mysqld.CloneUser:        newPassword(),
	}
}

// newPassword has every kind of character that a password policy may require, and less than 32 characters, MySQL's limit for the password
// of replication (manual, "CHANGE REPLICATION SOURCE TO Statement").
func newPassword() []byte { return []byte("aA1!" + rand.Text()) }

// checkProvenance refuses a Secret that has no controller, unless the members that use it exist. A client that may only write Secrets can
// copy all marks of the operator, and would know the key of the CA that the cluster takes for its own. Creating a StatefulSet takes the
// permission to run Pods.
func (r *reconciler) checkProvenance(ctx context.Context, client *reconcile.Client, n children.Names, secret *unstructured.Unstructured) error {
	if metav1.IsControlledBy(secret, client.Owner()) {
		return nil
	}
	set, err := r.reader.Get(ctx, children.StatefulSets(), n.Namespace, n.Cluster)
	if apierrors.IsNotFound(err) {
		return &reconcile.ForeignError{Resource: children.Secrets(), Namespace: n.Namespace, Name: secret.GetName(), MissingProof: "the StatefulSet " + n.Cluster}
	}
	if err != nil {
		return err
	}
	return client.CheckOwnership(set, children.StatefulSets(), n.Labels())
}

// ownSecret reads one of the cluster's own Secrets, and adopts one that a deleted cluster of the same name left; nil if there is none.
func (r *reconciler) ownSecret(ctx context.Context, client *reconcile.Client, n children.Names, name string) (*unstructured.Unstructured, error) {
	found, err := r.reader.Get(ctx, children.Secrets(), n.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no Secret, and no error in looking for one
	}
	if err != nil {
		return nil, err
	}
	if err := client.CheckOwnership(found, children.Secrets(), n.Labels()); err != nil {
		return nil, err
	}
	if err := r.checkProvenance(ctx, client, n, found); err != nil {
		return nil, err
	}
	return client.Adopt(ctx, children.Secrets(), found)
}

func (r *reconciler) createSecret(ctx context.Context, client *reconcile.Client, n children.Names, name string, data map[string][]byte) (*unstructured.Unstructured, error) {
	return client.Create(ctx, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: n.Namespace, Labels: n.Labels()},
		Type:       corev1.SecretTypeOpaque, Data: data,
	})
}

// ownAccounts creates the passwords of the operator's own MySQL accounts if they are missing.
func (r *reconciler) ownAccounts(ctx context.Context, client *reconcile.Client, n children.Names) error {
	found, err := r.ownSecret(ctx, client, n, n.AccountsSecret())
	if found != nil || err != nil {
		return err
	}
	_, err = r.createSecret(ctx, client, n, n.AccountsSecret(), newAccounts())
	return err
}
