package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/schema"
	mysqlv1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// theBackup is what restores find: its checksum, and the transactions of a server that is long gone.
const (
	theChecksum = "sha256:abc"
	theGTIDs    = "99999999-0000-0000-0000-000000000000:1-7"
)

// vault is a site in which there are backups, too. Kubernetes' own Job controller makes the Pods that restore; the tests are their nodes.
type vault struct {
	*site
	depot *depot

	mu sync.Mutex
	// restored counts, by the UID of the claim, how often a backup was put on a volume.
	restored map[types.UID]int
}

func newVault(t *testing.T) *vault {
	t.Helper()
	s := newSite(t)
	define(t, s.Server, depotKinds()...)
	v := &vault{site: s, depot: &depot{s.place}, restored: map[types.UID]int{}}
	v.always(t, v.answers)
	return v
}

// theSecret is a text that an image knows, and that only another team may read.
const theSecret = "S3cr3t-of-another-team"

// told is what images say when they are asked for their version: mysql:8.4 is 8.4.6, and what has no number is 9.7.4.
func told(image string) string {
	name, tag, _ := strings.Cut(image, ":")
	if name == "evil" || name == "broken" {
		return theSecret
	}
	for _, version := range []string{tag, tag + ".6"} {
		if replication.Series(version) != "" {
			return version
		}
	}
	return "9.7.4"
}

// toldOfSettings is what images say beside that when they are asked about settings.
func toldOfSettings(pod corev1.Pod) string {
	for _, variable := range pod.Spec.InitContainers[0].Env {
		if variable.Name == agent.EnvProbeSettings && strings.Contains(variable.Value, "no_such_setting") {
			return " refused no_such_setting " + theSecret
		} else if variable.Name == agent.EnvProbeSettings {
			return " accepted"
		}
	}
	return ""
}

// answers does what the Pods do that ask a cluster's image for its version.
func (v *vault) answers(ctx context.Context) {
	found, err := v.of("pods").List(ctx, metav1.ListOptions{LabelSelector: transfer.Selector + "," + transfer.LabelVersion})
	if err != nil {
		return
	}
	for _, item := range found.Items {
		var pod corev1.Pod
		if err := schema.Decode(&item, &pod); err != nil || pod.Status.Phase != corev1.PodPending {
			continue
		}
		image := pod.Spec.Containers[0].Image
		if strings.HasPrefix(image, "broken:") {
			ended := map[string]any{"terminated": map[string]any{"exitCode": protocol.ExitRefused, "message": told(image)}}
			_ = v.becomes(ctx, pod.Name, corev1.PodFailed, container(agent.CommandVersion, ended))
			continue
		}
		_ = v.succeeds(ctx, pod.Name, agent.CommandVersion, told(image)+toldOfSettings(pod))
	}
}

// succeeds ends a Pod well, with the termination message of one of its containers.
func (v *vault) succeeds(ctx context.Context, pod, program, message string) error {
	ended := map[string]any{"terminated": map[string]any{"exitCode": 0, "message": message, "reason": "Completed", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:00Z"}}
	return v.becomes(ctx, pod, corev1.PodSucceeded, container(program, ended))
}

// container is what kubelet says of a container.
func container(name string, state map[string]any) any {
	return map[string]any{"name": name, "image": "none", "imageID": "none", "ready": false, "restartCount": 0, "state": state}
}

// becomes writes what kubelet would about a Pod.
func (v *vault) becomes(ctx context.Context, pod string, phase corev1.PodPhase, containers ...any) error {
	status, err := json.Marshal(map[string]any{"status": map[string]any{"phase": phase, "containerStatuses": containers}})
	if err != nil {
		return err
	}
	_, err = v.of("pods").Patch(ctx, pod, types.MergePatchType, status, metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	return err
}

// always does something again and again until the test ends.
func (v *vault) always(t *testing.T, act func(context.Context)) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			act(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { stop(); working.Wait() })
}

// backedUp makes an instance, and brings it to a phase; a completed one says where its data is.
func (v *vault) backedUp(t *testing.T, name string, phase mysqlv1.BackupPhase, location string) {
	t.Helper()
	v.depot.back(t, name, "cluster: old")
	v.becomesBackup(t, name, phase, location)
}

func (v *vault) becomesBackup(t *testing.T, name string, phase mysqlv1.BackupPhase, location string) {
	t.Helper()
	status := fmt.Sprintf(`{"status":{"phase":%q,"checksum":%q,"dataSize":1048576,"location":%s}}`, phase, theChecksum, location)
	v.depot.patch(t, "mysqlbackupinstances", name, status, "status")
}

// inBucket and onVolume are where backups are.
func inBucket(secret string) string {
	return fmt.Sprintf(`{"url":"s3://bucket/shop/old/nightly","secret":%q}`, secret)
}

// nightly makes a completed backup in a bucket that takes no credentials.
func (v *vault) nightly(t *testing.T) {
	t.Helper()
	v.backedUp(t, "nightly", mysqlv1.BackupCompleted, `{"url":"s3://bucket/shop/old/nightly"}`)
}

// restorePods are the Pods that restore a cluster, oldest first.
func (v *vault) restorePods(ctx context.Context, cluster string) ([]corev1.Pod, error) {
	found, err := v.of("pods").List(ctx, metav1.ListOptions{LabelSelector: transfer.Selector + "," + transfer.LabelRestore + "=" + cluster + ",!" + transfer.LabelVersion})
	if err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for _, item := range found.Items {
		var pod corev1.Pod
		if err := schema.Decode(&item, &pod); err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return pods, nil
}

// pod waits for a Pod that is to restore a cluster and that has not begun, other than these.
func (v *vault) pod(t *testing.T, cluster string, but ...string) string {
	t.Helper()
	name := ""
	soon(t, func(ctx context.Context) string {
		pods, err := v.restorePods(ctx, cluster)
		if err != nil {
			return err.Error()
		}
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil && !slices.Contains(but, pod.Name) {
				name = pod.Name
				return ""
			}
		}
		found, err := v.cluster(ctx, cluster)
		return fmt.Sprintf("there are %d Pods that restore %s, none that is to begin; the cluster is %s: %s (%v)", len(pods), cluster, why(found).Reason, why(found).Message, err)
	})
	return name
}

// refuses ends a Pod with a reason not to try again.
func (v *vault) refuses(t *testing.T, pod, reason, message string) {
	t.Helper()
	content, err := protocol.Outcome{Reason: reason, Message: message}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	v.depot.runs(t, pod, "")
	v.depot.ends(t, pod, protocol.ExitRefused, string(content))
}

// restores does what the program in a Pod does: it looks at the volume first, and tells how that went.
func (v *vault) restores(t *testing.T, cluster, pod string) {
	t.Helper()
	if err := v.tryRestore(t.Context(), cluster, pod); err != nil {
		t.Fatal(err)
	}
}

func (v *vault) tryRestore(ctx context.Context, cluster, pod string) error {
	claim, err := v.of("persistentvolumeclaims").Get(ctx, "data-"+cluster+"-0", metav1.GetOptions{})
	if err != nil {
		return err
	}
	said := protocol.Outcome{Reason: protocol.ReasonCompleted, Checksum: theChecksum, ServerVersion: "9.7.4", GTIDExecuted: theGTIDs, Adopted: !v.putOn(claim.GetUID(), cluster+"-0")}
	content, err := said.Encode()
	if err != nil {
		return err
	}
	return v.succeeds(ctx, pod, protocol.CommandRestore, string(content))
}

// putOn puts the backup on a volume, unless it is there already.
func (v *vault) putOn(claim types.UID, member string) bool {
	volume := v.node.volume(claim, member)
	v.node.network.mu.Lock()
	defer v.node.network.mu.Unlock()
	if volume.origin != "" {
		return false
	}
	volume.origin = replication.OriginMember
	volume.executed, _ = replication.ParseGTIDSet(theGTIDs)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.restored[claim]++
	return true
}

// onceRestored fails the test unless exactly so many volumes were restored to, each once.
func (v *vault) onceRestored(t *testing.T, volumes int) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.restored) != volumes {
		t.Errorf("backups were put on %d volumes, want %d", len(v.restored), volumes)
	}
	for claim, times := range v.restored {
		if times != 1 {
			t.Errorf("a backup was put %d times on the volume of %s", times, claim)
		}
	}
}

// nodes let every Pod that restores do its work, until the test ends.
func (v *vault) nodes(t *testing.T, cluster string) {
	t.Helper()
	v.always(t, func(ctx context.Context) {
		pods, _ := v.restorePods(ctx, cluster)
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
				_ = v.tryRestore(ctx, cluster, pod.Name)
			}
		}
	})
}

// phase waits until a cluster's restore is in a phase.
func (v *vault) phase(t *testing.T, cluster string, phase mysqlv1.RestorePhase) mysqlv1.MySQLCluster {
	t.Helper()
	var found mysqlv1.MySQLCluster
	soon(t, func(ctx context.Context) string {
		var err error
		if found, err = v.cluster(ctx, cluster); err != nil {
			return err.Error()
		}
		if found.Status.Restore == nil || found.Status.Restore.Phase != phase {
			return fmt.Sprintf("the restore of %s is %+v, want it %s: %s", cluster, found.Status.Restore, phase, why(found).Message)
		}
		return ""
	})
	return found
}

// untouched fails the test if anything was made for a restore.
func (v *vault) untouched(t *testing.T, cluster string) {
	t.Helper()
	for _, what := range []string{"jobs", "persistentvolumeclaims", "statefulsets", "pods"} {
		client := v.of
		if what == "jobs" {
			client = v.depot.of
		}
		found, err := client(what).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range found.Items {
			if strings.HasPrefix(strings.TrimPrefix(item.GetName(), "data-"), cluster+"-") || item.GetName() == cluster {
				t.Errorf("%s %s was made", what, item.GetName())
			}
		}
	}
}

// fromTheBackup fails the test unless a cluster's members have what was restored.
func (v *vault) fromTheBackup(t *testing.T, cluster mysqlv1.MySQLCluster) {
	t.Helper()
	for _, member := range cluster.Status.Members {
		if !strings.Contains(member.GTIDExecuted, theGTIDs) {
			t.Errorf("%s has the transactions %q, want those of the backup among them", member.Name, member.GTIDExecuted)
		}
	}
}
