package cluster

import (
	"context"
	"errors"
	"fmt"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// applySet applies the StatefulSet. While a change must wait or is held back, it applies only the number of members and the partition.
func (r *reconciler) applySet(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed, scale int) (applyResult, error) {
	if isInnoDBOnly(cluster, seen) {
		cluster = children.WithTableDefaults(cluster)
	}
	spec := children.StatefulSetInput{AgentImage: r.operator.Image, Scale: scale, ClaimSize: claimSize(cluster, seen), InnoDBOnly: isInnoDBOnly(cluster, seen)}
	if seen.set != nil {
		spec.Version = seen.set.ResourceVersion
	}
	stays := applyResult{unsettled: true, waits: rolloutOf(cluster, seen).opening().waits != ""}
	if !stays.waits {
		var err error
		if stays.held, err = r.settingsProblem(ctx, client, cluster, seen, spec); err != nil {
			return stays, err
		}
	}
	if stays.waits || stays.held != nil {
		rolled, err := r.keepTemplate(ctx, client, cluster, seen, spec)
		stays.rolled = rolled
		return stays, err
	}
	plan, err := r.planRoll(ctx, client, cluster, seen, func(partition *int32) (bool, error) {
		spec.Partition = partition
		return client.IsApplied(ctx, children.StatefulSet(children.NamesOf(cluster), cluster, spec))
	})
	if err != nil || plan.waits {
		return applyResult{unsettled: true, waits: plan.waits}, err
	}
	spec.Partition = plan.partition
	change, err := client.Apply(ctx, children.StatefulSet(children.NamesOf(cluster), cluster, spec))
	if err != nil {
		return applyResult{unsettled: true}, err
	}
	rolled := change != reconcile.Unchanged
	return applyResult{rolled: rolled, unsettled: rolled || plan.doubtful}, nil
}

// keepTemplate sets how many members the StatefulSet asks for, and continues an update that is in progress as usual. The members keep the
// template that the operator applied last, and so do those that Kubernetes creates again.
func (r *reconciler) keepTemplate(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed, spec children.StatefulSetInput) (rolled bool, err error) {
	if seen.set == nil {
		return false, nil
	}
	has := cluster
	has.Spec.Image = children.ImageOf(*seen.set)
	plan, err := r.planRoll(ctx, client, has, seen, func(*int32) (bool, error) { return true, nil })
	if err != nil || scaleOf(seen) == spec.Scale && partitionOf(*seen.set) == plan.first() {
		return false, err
	}
	live, err := liveSet(ctx, r.reader, client.Owner(), children.NamesOf(cluster))
	if live == nil || err != nil {
		return false, err
	}
	kept, err := appsv1ac.ExtractStatefulSet(live, reconcile.ManagerChildren)
	if err != nil || kept.Spec == nil || kept.Spec.Template == nil {
		return false, err // another client created it, and the operator has not adopted it yet
	}
	kept.WithResourceVersion(spec.Version).Spec.WithReplicas(int32(spec.Scale)).WithUpdateStrategy(children.UpdateStrategy(plan.partition)) //nolint:gosec // the schema bounds it far below
	change, err := client.Apply(ctx, kept)
	return change != reconcile.Unchanged, err
}

// holdPrimary sets the partition that holds an update back from the primary. The members keep their template, unless the operator has not
// adopted the StatefulSet: then all of it is applied. It is an error if the StatefulSet stays as it is.
func (r *reconciler) holdPrimary(ctx context.Context, client *reconcile.Client, scale int, result *passResult) error {
	set := children.StatefulSetInput{Scale: scale, Version: result.seen.set.ResourceVersion}
	rolled, err := r.keepTemplate(ctx, client, result.cluster, result.seen, set)
	if err != nil || rolled {
		result.children = applyResult{rolled: rolled, unsettled: true}
		return err
	}
	result.children, err = r.applySet(ctx, client, result.cluster, result.seen, scale)
	result.children.unsettled = true
	if err == nil && !result.children.rolled {
		err = fmt.Errorf("hold the update of StatefulSet %s back from the primary: the StatefulSet did not change", result.cluster.Name)
	}
	return err
}

// rolloutPlan is a pass's decision about an update of the members.
type rolloutPlan struct {
	// partition is the number of the first member that may be restarted now; nil if the order does not matter.
	partition *int32
	// doubtful reports whether a live read shows another primary, permission or spec than this pass has seen. The partition then stays as
	// it is.
	doubtful bool
	// waits reports whether the StatefulSet stays as it is, because an update that a user allowed to restart the primary is in progress.
	// Kubernetes creates a member below the partition again from the last update that all members had. With another template, whose
	// partition is raised again, the primary could come back older than it was.
	waits bool
}

// first returns the number of the first member that may be restarted.
func (p rolloutPlan) first() int {
	if p.partition == nil {
		return 0
	}
	return int(*p.partition)
}

// planRoll decides about an update. hasIt reports whether the StatefulSet already has the template that the pass applies, with a partition.
// The partition is lowered only for a change that is allowed, that the StatefulSet already has, and that this pass does not replace by
// another. The template of a later change comes together with the partition that holds it back.
func (r *reconciler) planRoll(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed, hasIt func(*int32) (bool, error)) (rolloutPlan, error) {
	now := rolloutOf(cluster, seen)
	wanted := now.opening().bound
	if lowered, maybe := now.lowered(); maybe {
		same, err := hasIt(number(now.partition))
		if err != nil {
			return rolloutPlan{}, err
		}
		if same {
			wanted = lowered
		} else if now.isUnderWay() && diagnose(cluster, seen) == nil {
			return rolloutPlan{waits: true}, nil
		}
	}
	if wanted < now.partition {
		err := r.confirmRoll(ctx, client, cluster)
		if errors.Is(err, errRecordMoved) {
			return rolloutPlan{partition: number(now.partition), doubtful: true}, nil
		}
		if err != nil {
			return rolloutPlan{}, err
		}
	}
	if wanted == 0 && now.primary == 0 {
		return rolloutPlan{}, nil
	}
	return rolloutPlan{partition: number(wanted)}, nil
}

func number(ordinal int) *int32 {
	small := int32(ordinal) //nolint:gosec // below maxMembers
	return &small
}

// confirmRoll checks that the live cluster still has the primary, the permission and the spec that a partition was decided on.
func (r *reconciler) confirmRoll(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster) error {
	live, err := r.liveCluster(ctx, client)
	isSame := live.Status.Primary == cluster.Status.Primary && allowedUpdate(live) == allowedUpdate(cluster) && live.Generation == cluster.Generation
	if err == nil && !isSame {
		return errRecordMoved
	}
	return err
}
