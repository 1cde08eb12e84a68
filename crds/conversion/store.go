package conversion

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// maxRounds bounds how often the Secret is read again because another replica wrote it meanwhile.
const maxRounds = 5

// labelOwner is set to Config.Owner on the objects that the Server makes.
const labelOwner = "app.kubernetes.io/managed-by"

// store keeps the material in one Secret. It reads the Secret by name every few seconds, which costs almost nothing, and never watches it:
// many auditors treat the permission to watch a Secret by name like the permission to list all of them.
type store struct {
	secrets corev1client.SecretInterface
	config  Config
	// manager is a field manager of this process alone. If two processes create the Secret at the same moment by server-side apply, the
	// second gets a conflict instead of overwriting the first. (RBAC can limit an apply to the Secret's name, but not a POST.)
	manager string
	now     func() time.Time
}

// sync reads the Secret, takes the steps that are due, and returns the content that the Secret then has.
func (s store) sync(ctx context.Context, remembered *material, leads bool, trusted func(*material) bool) (*material, error) {
	for range maxRounds {
		secret, err := s.secrets.Get(ctx, s.config.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			secret, err = nil, nil
		}
		if err != nil {
			return nil, s.fault("read", err)
		}
		held, err := s.read(secret)
		if err != nil {
			return nil, err
		}
		view := situation{material: held, remembered: remembered, hosts: s.config.hosts(), leads: leads, trusted: held != nil && trusted(held), overlap: s.config.Overlap}
		next := view.nextStep(s.now())
		if next == stepKeep {
			return held, nil
		}
		made, err := view.take(next, s.now())
		if err != nil {
			return nil, s.fault(string(next)+" for", err)
		}
		err = s.write(ctx, secret, made)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, s.fault("write", err)
		}
		s.config.Log.Info("wrote conversion certificates", "op", string(next), "namespace", s.config.Namespace, "name", s.config.Name)
	}
	return nil, s.fault("write", fmt.Errorf("other clients changed it %d times meanwhile: look for another program that manages it", maxRounds))
}

// read returns the content of the Secret: nothing if there is no Secret, or if it is ours and damaged.
func (s store) read(secret *corev1.Secret) (*material, error) {
	if secret == nil {
		return nil, nil //nolint:nilnil // a missing Secret is a situation, not an error
	}
	held, err := readMaterial(secret.Data)
	if secret.Labels[labelOwner] != s.config.Owner {
		return nil, s.fault("use", fmt.Errorf("it does not belong to this operator, because it does not have the label %s=%s: delete or rename it, and the operator makes a new one", labelOwner, s.config.Owner))
	}
	if err != nil {
		s.config.Log.Info("conversion certificates are damaged, making new ones", "namespace", s.config.Namespace, "name", s.config.Name, "error", err.Error())
		return nil, nil //nolint:nilnil // the same
	}
	return held, nil
}

// write creates the Secret, or replaces the content of exactly the Secret that was read.
func (s store) write(ctx context.Context, read *corev1.Secret, made *material) error {
	if read == nil {
		fresh := applycore.Secret(s.config.Name, s.config.Namespace).WithLabels(map[string]string{labelOwner: s.config.Owner}).
			WithType(corev1.SecretTypeOpaque).WithData(made.data())
		_, err := s.secrets.Apply(ctx, fresh, metav1.ApplyOptions{FieldManager: s.manager})
		return err
	}
	data := map[string][]byte{}
	for key := range read.Data {
		data[key] = nil // null removes a key that is not ours
	}
	maps.Copy(data, made.data())
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": read.ResourceVersion, "uid": read.UID}, "data": data})
	if err != nil {
		return err
	}
	_, err = s.secrets.Patch(ctx, s.config.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: s.config.fieldManager()})
	return err
}

func (s store) fault(verb string, err error) error {
	return fmt.Errorf("%s Secret %s/%s of the conversion webhook: %w", verb, s.config.Namespace, s.config.Name, err)
}
