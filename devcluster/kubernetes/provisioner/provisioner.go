// Package provisioner creates persistent volumes from folders of the nodes.
//
// The volumes are of the type "local". Unlike hostPath volumes they support fsGroup, so a process that is not root can write. They name
// their node, so the scheduler treats them like a real node's disk. Their size is not enforced, because nothing measures a folder. So to
// expand a volume means only to record the new size.
package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Name is the name of this provisioner in StorageClasses.
const Name = "devcluster.local/folder"

// folders provisions volumes under root: root/NODE/VOLUME.
type folders struct {
	root string
}

// Provision creates an empty folder on the node that the scheduler chose.
func (f folders) Provision(_ context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if err := supported(options); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	path := filepath.Join(f.root, options.SelectedNodeName, options.PVName)
	// The folder is owned by root and closed to others, like a new filesystem: pods that are not root get access with fsGroup.
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("make volume %s: %w", options.PVName, err)
	}
	return volume(options, path), controller.ProvisioningFinished, nil
}

// supported returns the reason why a claim cannot be served, for its events.
func supported(options controller.ProvisionOptions) error {
	claim := options.PVC.Spec
	if options.SelectedNodeName == "" {
		return errors.New("provision volume: no node chosen yet: the StorageClass needs volumeBindingMode WaitForFirstConsumer")
	}
	if claim.VolumeMode != nil && *claim.VolumeMode == corev1.PersistentVolumeBlock {
		return errors.New("provision volume: volumeMode Block is not supported by folder volumes, use Filesystem")
	}
	if slices.Contains(claim.AccessModes, corev1.ReadWriteMany) || slices.Contains(claim.AccessModes, corev1.ReadOnlyMany) {
		return errors.New("provision volume: a folder is on one node only, use access mode ReadWriteOnce or ReadWriteOncePod")
	}
	return nil
}

func volume(options controller.ProvisionOptions, path string) *corev1.PersistentVolume {
	mode := corev1.PersistentVolumeFilesystem
	onNode := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{options.SelectedNodeName}}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			VolumeMode:                    &mode,
			MountOptions:                  options.StorageClass.MountOptions,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: options.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{onNode}},
			}}},
		},
	}
}

// Delete removes the folder of a volume that this provisioner created, and nothing else. It refuses a volume whose path does not match its
// name.
func (f folders) Delete(_ context.Context, pv *corev1.PersistentVolume) error {
	node, err := f.nodeOf(pv)
	if err != nil {
		return err
	}
	// The folder is opened as an os.Root, so that a link in the data cannot lead the removal outside.
	dir, err := os.OpenRoot(filepath.Join(f.root, node))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove volume %s: %w", pv.Name, err)
	}
	defer dir.Close()
	if err := dir.RemoveAll(pv.Name); err != nil {
		return fmt.Errorf("remove volume %s: %w", pv.Name, err)
	}
	return nil
}

func (f folders) nodeOf(pv *corev1.PersistentVolume) (string, error) {
	if pv.Spec.Local == nil {
		return "", fmt.Errorf("remove volume %s: it is not a local volume", pv.Name)
	}
	dir := filepath.Dir(pv.Spec.Local.Path)
	node := filepath.Base(dir)
	if pv.Spec.Local.Path != filepath.Join(f.root, node, pv.Name) {
		return "", fmt.Errorf("remove volume %s: its path %q is not that of one of this cluster's volumes", pv.Name, pv.Spec.Local.Path)
	}
	return node, nil
}
