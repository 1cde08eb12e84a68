package configmonitor

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const key = stampPrefix + "settings"

func stamped() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: newHash}}}
}

func TestRolloutOfDeployment(t *testing.T) {
	t.Parallel()
	done := func() appsv1.Deployment {
		return appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), Template: stamped()},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ReadyReplicas: 3},
		}
	}
	late := []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
	for story, test := range map[string]struct {
		change func(*appsv1.Deployment)
		want   rollout
	}{
		"every Pod is new and available":                 {func(*appsv1.Deployment) {}, rollout{stamp: newHash, done: true}},
		"it was never restarted":                         {func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }, rollout{done: true}},
		"its controller has not observed the change yet": {func(d *appsv1.Deployment) { d.Generation = 3 }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"an old Pod is still there":                      {func(d *appsv1.Deployment) { d.Status.Replicas = 4 }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"one Pod is new":                                 {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, rollout{stamp: newHash, progressMessage: "1 of 3 Pods replaced"}},
		"a new Pod is not available":                     {func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"it was scaled to nothing": {func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{ObservedGeneration: 2}
		}, rollout{stamp: newHash, done: true}},
		"it is paused": {func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 0 }, rollout{stamp: newHash, stuck: true, progressMessage: "is paused: resume it with kubectl rollout resume deployment/web"}},
		"an earlier rollout was late, this one has not begun": {func(d *appsv1.Deployment) { d.Generation, d.Status.Conditions = 3, late }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"the new Pods do not come up": {
			func(d *appsv1.Deployment) { d.Status.AvailableReplicas, d.Status.Conditions = 2, late },
			rollout{stamp: newHash, stuck: true, progressMessage: "its new Pods do not become available, and the old ones stay: look at the new Pods (kubectl describe, kubectl logs), and correct the data or Deployment web"},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			deployment := done()
			test.change(&deployment)
			if got := rolloutOfDeployment(deployment, key); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestRolloutOfStatefulSet(t *testing.T) {
	t.Parallel()
	done := func() appsv1.StatefulSet {
		return appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "db", Generation: 2},
			Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3)), Template: stamped()},
			Status:     appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, CurrentRevision: "b", UpdateRevision: "b"},
		}
	}
	partitioned := func(set *appsv1.StatefulSet, partition, updated int32) {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
		set.Status.UpdatedReplicas, set.Status.CurrentRevision = updated, "a"
	}
	for story, test := range map[string]struct {
		change func(*appsv1.StatefulSet)
		want   rollout
	}{
		"every Pod is new and ready":                         {func(*appsv1.StatefulSet) {}, rollout{stamp: newHash, done: true}},
		"its controller has not observed the change yet":     {func(s *appsv1.StatefulSet) { s.Generation = 3 }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"one Pod is new":                                     {func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas, s.Status.CurrentRevision = 1, "a" }, rollout{stamp: newHash, progressMessage: "1 of 3 Pods replaced"}},
		"a new Pod is not ready":                             {func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 2 }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"the count of new Pods is that of before the change": {func(s *appsv1.StatefulSet) { s.Status.CurrentRevision = "a" }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"Pods below a partition stay":                        {func(s *appsv1.StatefulSet) { partitioned(s, 2, 1) }, rollout{stamp: newHash, done: true, progressMessage: "the 2 Pods below spec.updateStrategy.rollingUpdate.partition keep the old data"}},
		"a partition, on the way":                            {func(s *appsv1.StatefulSet) { partitioned(s, 1, 1) }, rollout{stamp: newHash, progressMessage: "1 of 2 Pods replaced"}},
		"a user wants to choose the time": {
			func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType },
			rollout{stamp: newHash, notRolledReason: "StatefulSet db has the update strategy OnDelete and replaces its Pods only when a user deletes them: delete them one by one"},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			set := done()
			test.change(&set)
			if got := rolloutOfStatefulSet(set, key); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestRolloutOfDaemonSet(t *testing.T) {
	t.Parallel()
	done := func() appsv1.DaemonSet {
		return appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "log", Generation: 2},
			Spec:       appsv1.DaemonSetSpec{Template: stamped()},
			Status:     appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3},
		}
	}
	for story, test := range map[string]struct {
		change func(*appsv1.DaemonSet)
		want   rollout
	}{
		"every Pod is new and available":                 {func(*appsv1.DaemonSet) {}, rollout{stamp: newHash, done: true}},
		"its controller has not observed the change yet": {func(s *appsv1.DaemonSet) { s.Generation = 3 }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"one node has a new Pod":                         {func(s *appsv1.DaemonSet) { s.Status.UpdatedNumberScheduled = 1 }, rollout{stamp: newHash, progressMessage: "1 of 3 Pods replaced"}},
		"a new Pod is not available":                     {func(s *appsv1.DaemonSet) { s.Status.NumberAvailable = 2 }, rollout{stamp: newHash, progressMessage: "3 of 3 Pods replaced"}},
		"a user wants to choose the time": {
			func(s *appsv1.DaemonSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType },
			rollout{stamp: newHash, notRolledReason: "DaemonSet log has the update strategy OnDelete and replaces its Pods only when a user deletes them: delete them one by one"},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			set := done()
			test.change(&set)
			if got := rolloutOfDaemonSet(set, key); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
