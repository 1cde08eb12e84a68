package claims

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
)

// TestAClaimWithoutAClassNeedsAUser: any other pending claim may get its volume by itself.
func TestAClaimWithoutAClassNeedsAUser(t *testing.T) {
	t.Parallel()
	none, fast := "", "fast"
	for name, test := range map[string]struct {
		phase  corev1.PersistentVolumeClaimPhase
		class  *string
		reason string
	}{
		"there is no default class":     {corev1.ClaimPending, nil, protocol.ReasonNoStorageClass},
		"the class is empty":            {corev1.ClaimPending, &none, protocol.ReasonNoStorageClass},
		"a provisioner is at work":      {corev1.ClaimPending, &fast, ""},
		"an administrator has bound it": {corev1.ClaimBound, nil, ""},
	} {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: test.class}, Status: corev1.PersistentVolumeClaimStatus{Phase: test.phase}}
		found := Diagnose(claim)
		if (found != nil) != (test.reason != "") || found != nil && (found.Reason != test.reason || !found.Stalled) {
			t.Errorf("%s: got %+v", name, found)
		}
	}
}
