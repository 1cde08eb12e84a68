package provisioner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func claim(size, capacity string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-db-0"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName:  "pvc-1",
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	if capacity != "" {
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	}
	return c
}

func options(c *corev1.PersistentVolumeClaim, node string) controller.ProvisionOptions {
	policy := corev1.PersistentVolumeReclaimRetain
	return controller.ProvisionOptions{StorageClass: &storagev1.StorageClass{ReclaimPolicy: &policy}, PVName: "pvc-1", PVC: c, SelectedNodeName: node}
}

func TestProvision(t *testing.T) {
	t.Parallel()
	f := folders{root: t.TempDir()}
	pv, state, err := f.Provision(t.Context(), options(claim("1Gi", ""), "node-2"))
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatalf("%s: %v", state, err)
	}
	want := filepath.Join(f.root, "node-2", "pvc-1")
	if pv.Spec.Local == nil || pv.Spec.Local.Path != want {
		t.Errorf("volume at %+v, want %s", pv.Spec.PersistentVolumeSource, want)
	}
	info, err := os.Stat(want)
	if err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("folder: %v, %v; want one that only fsGroup opens", info, err)
	}
	terms := pv.Spec.NodeAffinity.Required.NodeSelectorTerms
	if diff := cmp.Diff([]string{"node-2"}, terms[0].MatchExpressions[0].Values); diff != "" || len(terms) != 1 {
		t.Errorf("the scheduler may place it on %v: %s", terms, diff)
	}
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("reclaim policy %s is not the class's", pv.Spec.PersistentVolumeReclaimPolicy)
	}
}

func TestProvisionRefuses(t *testing.T) {
	t.Parallel()
	block := claim("1Gi", "")
	mode := corev1.PersistentVolumeBlock
	block.Spec.VolumeMode = &mode
	shared := claim("1Gi", "")
	shared.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	tests := map[string]struct {
		options controller.ProvisionOptions
		says    string
	}{
		"no node chosen":       {options: options(claim("1Gi", ""), ""), says: "WaitForFirstConsumer"},
		"a block device":       {options: options(block, "node-1"), says: "Filesystem"},
		"shared between nodes": {options: options(shared, "node-1"), says: "ReadWriteOnce"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := folders{root: t.TempDir()}
			_, state, err := f.Provision(t.Context(), tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.says) || state != controller.ProvisioningFinished {
				t.Errorf("%s: %v, want an error that says %q", state, err, tc.says)
			}
			if left, _ := os.ReadDir(f.root); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name, path string // below the root
		gone       bool
		refused    bool
	}{
		"its own folder goes":                      {name: "pvc-1", path: "node-1/pvc-1", gone: true},
		"one that is gone already is fine":         {name: "pvc-9", path: "node-1/pvc-9"},
		"a node that is gone already is fine":      {name: "pvc-9", path: "node-9/pvc-9"},
		"another volume's folder stays":            {name: "pvc-2", path: "node-1/pvc-1", refused: true},
		"a folder above stays":                     {name: "node-1", path: "node-1", refused: true},
		"a path that climbs out is not followed":   {name: "pvc-1", path: "node-1/../node-1/pvc-1/../../..", refused: true},
		"a path outside the cluster's root is not": {name: "pvc-1", path: "../pvc-1", refused: true},
		"nor one deeper than volumes can be":       {name: "pvc-1", path: "a/node-1/pvc-1", refused: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := folders{root: t.TempDir()}
			mine := filepath.Join(f.root, "node-1", "pvc-1")
			if err := os.MkdirAll(filepath.Join(mine, "mysql"), 0o700); err != nil {
				t.Fatal(err)
			}
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: tc.name}}
			pv.Spec.Local = &corev1.LocalVolumeSource{Path: f.root + "/" + tc.path}
			if err := f.Delete(t.Context(), pv); (err != nil) != tc.refused {
				t.Errorf("refused %v, want %t", err, tc.refused)
			}
			if _, err := os.Stat(mine); os.IsNotExist(err) != tc.gone {
				t.Errorf("the folder is gone: %t, want %t", os.IsNotExist(err), tc.gone)
			}
		})
	}
}

// Data may contain links to anywhere; the removal must not follow them.
func TestDeleteFollowsNoLinks(t *testing.T) {
	t.Parallel()
	f := folders{root: t.TempDir()}
	outside := filepath.Join(t.TempDir(), "precious")
	inside := filepath.Join(f.root, "node-1", "pvc-1")
	for _, dir := range []string{outside, inside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(inside, "link")); err != nil {
		t.Fatal(err)
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: inside}
	if err := f.Delete(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("the link's target: %v", err)
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	pending := claim("2Gi", "1Gi")
	pending.Status.Phase = corev1.ClaimPending
	tests := map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"more than it has":         {claim: claim("2Gi", "1Gi"), want: true},
		"what it has":              {claim: claim("1Gi", "1Gi")},
		"the same in another unit": {claim: claim("1Gi", "1024Mi")},
		"less than it has":         {claim: claim("1Gi", "2Gi")},
		"not bound yet":            {claim: pending},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := growth(tc.claim); got != tc.want {
				t.Errorf("grows %t, want %t", got, tc.want)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		madeBy string
		want   string
	}{
		"our volume grows, and so does the claim": {madeBy: Name, want: "3Gi"},
		"another provisioner's does not change":   {madeBy: "ebs.csi.aws.com", want: "1Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Annotations: map[string]string{annProvisionedBy: tc.madeBy}}}
			pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			client := fake.NewClientset(claim("3Gi", "1Gi"), pv)
			factory := informers.NewSharedInformerFactory(client, 0)
			e, err := newExpander(client, factory)
			if err != nil {
				t.Fatal(err)
			}
			factory.Start(t.Context().Done())
			factory.WaitForCacheSync(t.Context().Done())
			if err := e.expand(t.Context(), cache.NewObjectName("shop", "data-db-0")); err != nil {
				t.Fatal(err)
			}
			volume, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			after, err := client.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), "data-db-0", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := []string{volume.Spec.Capacity.Storage().String(), after.Status.Capacity.Storage().String()}
			if diff := cmp.Diff([]string{tc.want, tc.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
