package restore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// Observed is what a pass observed of a restore. It reads all of that live: restores are rare, and what follows cannot be undone.
type Observed struct {
	now time.Time
	// order is what to restore; nil while that is unknown or an input is missing, and then lacking says what.
	order   *transfer.RestoreOrder
	lacking *report.Problem
	// inputs identifies everything that the order only names: while it stays the same, a restore that failed fails again.
	inputs string
	// dataSize is how many bytes to restore; 0 is unknown. dataVersion is the MySQL release that made them; empty is unknown.
	dataSize    int64
	dataVersion string
	// server is what is known about the cluster's image.
	server versionCheck
	// members reports whether the StatefulSet already exists.
	members bool
	// claim is the first member's; nil if there is none. others are the claims of other members.
	claim  *corev1.PersistentVolumeClaim
	others []string
	// job is the Job; nil if there is none. jobObject is the same as it was read.
	job       *batchv1.Job
	jobObject *unstructured.Unstructured
	state     transfer.State
	// ended is how long this process has known that the Job, or its latest Pod, has ended.
	ended time.Duration
	// alive is how many Pods of this or an earlier Job have not ended; refused is why Kubernetes creates none.
	alive   int
	refused string
	// progress is the Pod's report; nil if it reports nothing.
	progress *protocol.Progress
}

// versionCheck is how far the operator is with asking a MySQL image for its version.
type versionCheck struct {
	// order is what to ask. job is the Job that asks, nil if there is none; jobObject is the same as it was read.
	order     transfer.VersionOrder
	job       *batchv1.Job
	jobObject *unstructured.Unstructured
	// version is the answer; empty if there is none. state is the Job's state, refused why Kubernetes creates no Pod for it.
	version string
	state   transfer.State
	refused string
	// ended is how long this process has known that the Job has ended.
	ended time.Duration
}

// Known is what the pass of the kind knows already.
type Known struct {
	// Members reports whether the StatefulSet of the members exists.
	Members bool
	// Transfers asks restoring Pods for their progress; nil for no progress.
	Transfers *protocol.Client
}

// Observe reads what the next step of a restore depends on.
func (r Restorer) Observe(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, known Known) (Observed, error) {
	n, seen := children.NamesOf(cluster), Observed{now: r.Now(), members: known.Members}
	if seen.members {
		return seen, nil
	}
	if err := r.observeClaims(ctx, n, &seen); err != nil {
		return seen, err
	}
	if err := r.observeSource(ctx, cluster, &seen); err != nil {
		return seen, err
	}
	seen.server.order = transfer.NewVersionOrder(cluster, r.Image)
	err := r.observeJob(ctx, client, n, known.Transfers, &seen)
	return seen, err
}

func (r Restorer) observeClaims(ctx context.Context, n children.Names, seen *Observed) error {
	first, err := r.Reader.Get(ctx, children.Claims(), n.Namespace, n.Claim(0))
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case !children.IsOwnClaim(n, first):
		return &reconcile.ForeignError{Resource: children.Claims(), Namespace: n.Namespace, Name: first.GetName()}
	default:
		seen.claim = &corev1.PersistentVolumeClaim{}
		if err := schema.Decode(first, seen.claim); err != nil {
			return err
		}
	}
	all, err := r.Reader.List(ctx, children.Claims(), n.Namespace, n.Selector())
	if err != nil {
		return err
	}
	for _, item := range all {
		member, found := strings.CutPrefix(item.GetName(), "data-")
		if ordinal, ok := n.Ordinal(member); found && ok && ordinal > 0 {
			seen.others = append(seen.others, item.GetName())
		}
	}
	slices.SortFunc(seen.others, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return nil
}

// observeJob reads the Job, its state, and the Pods that are left.
func (r Restorer) observeJob(ctx context.Context, client *reconcile.Client, n children.Names, transfers *protocol.Client, seen *Observed) error {
	job, err := r.jobs(n).Get(ctx, client, n.RestoreJob())
	if err != nil {
		return err
	}
	all, err := r.jobs(n).Pods(ctx)
	if err != nil {
		return err
	}
	if err := r.observeVersion(ctx, client, n, all, seen); err != nil {
		return err
	}
	all = slices.DeleteFunc(all, transfer.IsVersionPod)
	seen.alive = transfer.CountActive(all)
	if job == nil {
		return nil
	}
	seen.job, seen.jobObject = &batchv1.Job{}, job
	if err := schema.Decode(job, seen.job); err != nil {
		return err
	}
	own := transfer.PodsOf(seen.job, all)
	seen.state = transfer.Observe(protocol.CommandRestore, seen.job, own)
	if seen.state.Phase == transfer.Failed || seen.state.Phase == transfer.Succeeded {
		seen.ended = r.Ended.Waited(n.NamespacedName(), "ended "+string(seen.job.UID)+seen.state.Pod, seen.now)
	}
	if len(own) == 0 && seen.state.Phase == transfer.Pending {
		seen.refused, err = r.jobs(n).Refusal(ctx, job)
		return err
	}
	observeProgress(ctx, n, transfers, seen)
	return nil
}

// observeProgress asks the restoring Pod for its progress.
func observeProgress(ctx context.Context, n children.Names, transfers *protocol.Client, seen *Observed) {
	if seen.state.Phase == transfer.Running && transfers != nil && seen.state.PodIP != "" {
		// If it does not answer, that means nothing: it may have just begun, or be about to end.
		if progress, err := transfers.Progress(ctx, seen.state.PodIP, protocol.Host(n.Namespace, n.Cluster)); err == nil {
			seen.progress = &progress
		}
	}
}

// observeVersion reads the Job that asks the cluster's image for its version.
func (r Restorer) observeVersion(ctx context.Context, client *reconcile.Client, n children.Names, all []corev1.Pod, seen *Observed) error {
	job, err := r.jobs(n).Get(ctx, client, n.VersionJob())
	if err != nil || job == nil {
		return err
	}
	server := &seen.server
	server.job, server.jobObject = &batchv1.Job{}, job
	if err := schema.Decode(job, server.job); err != nil {
		return err
	}
	own := transfer.PodsOf(server.job, all)
	server.version, server.state = transfer.ObserveVersion(server.job, own)
	if server.state.Phase == transfer.Failed || server.state.Phase == transfer.Succeeded {
		server.ended = r.Ended.Waited(n.NamespacedName(), "ended "+string(server.job.UID), seen.now)
	}
	if len(own) == 0 && server.state.Phase == transfer.Pending {
		server.refused, err = r.jobs(n).Refusal(ctx, job)
	}
	return err
}
