package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
)

func TestNextLookBacksOffOnlyWhereNoMemberAnswers(t *testing.T) {
	t.Parallel()
	seconds := func(idle int, p requeueInput) time.Duration { p.idle = idle; return p.requeueAfter() / time.Second }
	tests := map[string]struct {
		prospect requeueInput
		// want is the time in seconds after 0, 1, 2, 3 and 100 looks at which nothing had changed.
		want []time.Duration
	}{
		"Ready":                                   {requeueInput{ready: true, heard: true, asked: true}, []time.Duration{10, 10, 10, 10, 10}},
		"a member answers":                        {requeueInput{heard: true, asked: true}, []time.Duration{1, 1, 1, 1, 1}},
		"a member answers, and help is needed":    {requeueInput{heard: true, asked: true, stalled: true, unwatched: true}, []time.Duration{5, 5, 5, 5, 5}},
		"agents run, and none answers":            {requeueInput{asked: true}, []time.Duration{1, 1, 1, 1, 10}},
		"Kubernetes starts Pods":                  {requeueInput{}, []time.Duration{1, 4, 16, 64, 300}},
		"an image cannot be pulled":               {requeueInput{stalled: true}, []time.Duration{5, 20, 80, 300, 300}},
		"a Secret is missing":                     {requeueInput{stalled: true, unwatched: true}, []time.Duration{5, 10, 20, 30, 30}},
		"a predecessor has to go":                 {requeueInput{unwatched: true}, []time.Duration{1, 2, 4, 8, 30}},
		"a volume is late in three seconds":       {requeueInput{due: 3 * time.Second}, []time.Duration{1, 3, 3, 3, 3}},
		"a volume is late later than anyone asks": {requeueInput{ready: true, due: time.Hour}, []time.Duration{10, 10, 10, 10, 10}},
	}
	for name, test := range tests {
		got := []time.Duration{}
		for _, idle := range []int{0, 1, 2, 3, 100} {
			got = append(got, seconds(idle, test.prospect))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestJitterNeverMakesALookLater(t *testing.T) {
	t.Parallel()
	for longest, shortest := range map[time.Duration]time.Duration{calmEvery: calmEvery * 7 / 8, stepEvery: stepEvery / 2} {
		seen := map[time.Duration]bool{}
		for range 100 {
			got := jittered(longest)
			if got > longest || got < shortest {
				t.Fatalf("a look every %s became one after %s", longest, got)
			}
			seen[got] = true
		}
		if len(seen) < 2 {
			t.Errorf("all clusters are looked at together, every %s", longest)
		}
	}
}

func TestSecretsAreReadWhenTheyMayBeNeeded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ready, wanted bool
		want          []time.Duration // in seconds, after 0, 1, 2, 3 and 100 looks without a change
	}{
		"Ready":                       {true, false, []time.Duration{300, 300, 300, 300, 300}},
		"a Pod may wait for one":      {false, true, []time.Duration{15, 30, 60, 60, 60}},
		"no Pod waits for one":        {false, false, []time.Duration{15, 600, 600, 600, 600}},
		"Ready, though a Pod may not": {true, true, []time.Duration{300, 300, 300, 300, 300}},
	} {
		got := []time.Duration{}
		for _, looks := range []int{0, 1, 2, 3, 100} {
			got = append(got, secretsAfter(test.ready, test.wanted, looks)/time.Second)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProspectFollowsFromWhatWasSeen(t *testing.T) {
	t.Parallel()
	noPods := func(s *scene) *scene {
		s.seen.pods = nil
		for i := range s.seen.members {
			s.seen.members[i].Status, s.seen.members[i].Pod = nil, false
		}
		return s
	}
	waiting := func(s *scene, reason string) *scene {
		for i := range s.seen.pods {
			s.seen.members[i].Status = nil
			s.seen.pods[i].Spec.NodeName = "node-1"
			s.seen.pods[i].Status = corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
				Name: children.ContainerAgent, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
			}}}
		}
		return s
	}
	notDurable := healthy(t, 3)
	notDurable.record.RequiredAcks = 0
	silent := healthy(t, 2).silent(0).silent(1)
	for i := range silent.seen.pods {
		silent.seen.pods[i].Status.PodIP = "10.0.0.1"
	}
	alarming := func(members int) *scene {
		s := healthy(t, 3)
		for ordinal := range members {
			s = s.member(ordinal, true, func(m *replication.Status) { m.AlarmsArrive = true })
		}
		return s.member(0, true, func(m *replication.Status) {
			m.Lease = &replication.Lease{Needs: 1, Lasts: time.Minute, Left: time.Minute, IsHeard: true}
		})
	}
	withoutLease := alarming(3).member(0, true, func(m *replication.Status) { m.Lease = nil })
	stuck := alarming(3).member(0, true, func(m *replication.Status) {
		m.Probe = replication.VolumeProbe{IsKnown: true, StuckFor: replication.StuckLeast}
	})
	joins, unmatched := alarming(3).report(nil, nil), alarming(3).report(nil, nil)
	joins.decision.Record.Joining = []string{"db-3"}
	unmatched.decision.Matching = &replication.Matching{}
	short := healthy(t, 3).member(0, true, func(m *replication.Status) { m.AcksShortSeconds = 1 })
	type expected struct {
		next         time.Duration
		wantsSecrets bool
	}
	for name, test := range map[string]struct {
		report passResult
		want   expected
	}{
		"as it should be":                           {healthy(t, 3).report(nil, nil), expected{calmEvery, false}},
		"all alarms arrive":                         {alarming(3).report(nil, nil), expected{secretsLimit, false}},
		"some alarms arrive":                        {alarming(2).report(nil, nil), expected{calmEvery, false}},
		"a member joins":                            {joins, expected{calmEvery, false}},
		"the primary refused to match transactions": {unmatched, expected{calmEvery, false}},
		"the primary has no lease":                  {withoutLease.report(nil, nil), expected{calmEvery, false}},
		"a volume stands still":                     {stuck.report(nil, nil), expected{stepEvery, false}},
		"ready, but not durable":                    {notDurable.report(nil, nil), expected{stepEvery, false}},
		"acknowledgements are late":                 {short.report(nil, nil), expected{stepEvery, false}},
		"one member is silent":                      {healthy(t, 2).silent(1).report(nil, nil), expected{stepEvery, true}},
		"all members are silent":                    {silent.report(nil, nil), expected{calmEvery, true}},
		"members wait for help":                     {healthy(t, 2).silent(1).report(nil, &report.Problem{Reason: report.ReasonForeignObject, Message: "in the way", Stalled: true}), expected{helpEvery, true}},
		"Pods are not made yet":                     {noPods(healthy(t, 3)).report(nil, nil), expected{unwatchedLimit, false}},
		"containers are made":                       {waiting(healthy(t, 3), "ContainerCreating").report(nil, nil), expected{watchedLimit, true}},
		"an image cannot be found":                  {waiting(healthy(t, 3), "ImagePullBackOff").report(nil, nil), expected{watchedLimit, false}},
		"a child is being deleted, while the operator waits for something else": {func() passResult {
			going := waiting(healthy(t, 3), "ImagePullBackOff").report(nil, nil)
			going.children.unsettled = true
			return going
		}(), expected{unwatchedLimit, false}},
		"no node takes the Pods": {func() passResult {
			s := waiting(healthy(t, 3), "")
			for i := range s.seen.pods {
				s.seen.pods[i].Spec.NodeName = ""
			}
			return s.report(nil, nil)
		}(), expected{watchedLimit, false}},
	} {
		ahead := test.report.prospect(test.report.status())
		ahead.idle = 100
		if got := (expected{ahead.requeueAfter(), wantsSecrets(test.report.cluster, test.report.seen)}); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// No watch reports Secrets: when reading them is due, a pass is due, even if everything else could wait.
func TestSecretsThatAreDueBringAPass(t *testing.T) {
	t.Parallel()
	now := time.Unix(50_000, 0)
	waiting := healthy(t, 2)
	for i := range waiting.seen.pods {
		waiting.seen.members[i].Status = nil
		waiting.seen.pods[i].Spec.NodeName = "node-1"
	}
	for name, test := range map[string]struct {
		known clusterMemory
		// least and most bound when the next look is, after many looks in which nothing changed.
		least, most time.Duration
	}{
		"looked at just now, and a Pod may wait for one": {clusterMemory{looked: now}, secretsWanted * 7 / 8, secretsWanted},
		"looked at 50 s ago":                             {clusterMemory{looked: now.Add(-50 * time.Second)}, 8 * time.Second, 10 * time.Second},
		"they came due during the pass":                  {clusterMemory{looked: now.Add(-secretsWanted)}, stepEvery / 2, stepEvery},
		"they could not be read":                         {clusterMemory{}, watchedLimit * 7 / 8, watchedLimit},
		"a user asks for a new CA at a later time":       {clusterMemory{looked: now, asked: rotationRequest{before: now.Add(4 * time.Second)}}, 3 * time.Second, 4 * time.Second},
	} {
		found := waiting.report(nil, nil)
		r := reconciler{memory: newMemory(), now: func() time.Time { return now }}
		key, looked := keyOf(found.cluster), time.Duration(0)
		for range 50 {
			looked = r.nextLook(found, found.status(), test.known)
			r.memory.lookedAtSecrets(key, found.cluster.UID)
		}
		if looked < test.least || looked > test.most {
			t.Errorf("%s: the next look is after %s, want %s to %s", name, looked, test.least, test.most)
		}
	}
}

func TestALateVolumeIsNoticedInTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(5000, 0)
	claim := func(age time.Duration, phase corev1.PersistentVolumeClaimPhase) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-age))}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase},
		}
	}
	for name, test := range map[string]struct {
		volumes []corev1.PersistentVolumeClaim
		want    time.Duration
	}{
		"none":           {nil, 0},
		"bound":          {[]corev1.PersistentVolumeClaim{claim(time.Second, corev1.ClaimBound)}, 0},
		"late already":   {[]corev1.PersistentVolumeClaim{claim(time.Hour, corev1.ClaimPending)}, 0},
		"the first late": {[]corev1.PersistentVolumeClaim{claim(5*time.Second, corev1.ClaimPending), claim(20*time.Second, corev1.ClaimPending)}, 11 * time.Second},
	} {
		if got := untilLate(observed{now: now, volumes: test.volumes}); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestMemoryCountsForHowLongNothingChanged(t *testing.T) {
	t.Parallel()
	m, key := newMemory(), types.NamespacedName{Namespace: "shop", Name: "db"}
	same := lookHistory{uid: "a", digest: 1}
	for want := range 3 {
		if got := m.see(key, same); got != want {
			t.Errorf("look %d: nothing changed for %d looks, want %d", want, got, want)
		}
	}
	m.lookedAtSecrets(key, "a")
	m.see(key, lookHistory{uid: "a", digest: 1, wanted: true})
	if got := m.sight(key, "a"); got.looks != 1 || !got.wanted || got.idle != 3 {
		t.Errorf("it remembers %+v", got)
	}
	if got := m.see(key, lookHistory{uid: "a", digest: 2}); got != 0 || m.sight(key, "a").looks != 0 {
		t.Errorf("after a change it remembers %+v", m.sight(key, "a"))
	}
	if got := m.sight(key, "b"); got.looks != 0 || got.digest != 0 {
		t.Errorf("of another cluster with the same name it remembers %+v", got)
	}
	m.forget(key)
	if got := m.see(key, lookHistory{uid: "a", digest: 2}); got != 0 {
		t.Errorf("a cluster that is gone is remembered: %d", got)
	}
}

// TestTheNextLookComesWhenALeaseEnds: not a moment before, and not later because the pass took time after the members had answered.
func TestTheNextLookComesWhenALeaseEnds(t *testing.T) {
	t.Parallel()
	s := vanishing(t, 2)
	record := s.record
	record.Primary, record.FormerPrimary, record.Revision = "", record.Primary, record.Revision+1
	s.cluster.Status.Primary, s.cluster.Status.FormerPrimary, s.cluster.Status.Revision = "", record.FormerPrimary, record.Revision
	for ordinal := 1; ordinal < 3; ordinal++ {
		s.member(ordinal, true, func(status *replication.Status) {
			status.ObservedUnder, status.Acknowledging, status.DeafFor = record.Version(), false, 2*time.Second
			status.Last = &replication.Assignment{Record: record, Role: replication.RoleReplica}
		})
		s.seen.members[ordinal].SilentFor = time.Millisecond
	}
	answered := time.Now()
	s.seen.answered = answered
	found := passResult{cluster: s.cluster, seen: s.seen}
	all := found.leaseEndsIn(answered)
	if all <= replication.ShortLease-2*time.Second || all >= time.Second {
		t.Fatalf("the members have heard nothing for 2 s, and the lease ends in %s", all)
	}
	for after, want := range map[time.Duration]time.Duration{100 * time.Millisecond: all - 100*time.Millisecond, time.Minute: time.Millisecond} {
		if got := found.leaseEndsIn(answered.Add(after)); got != want {
			t.Errorf("%s after the members have answered, the next look is due in %s, want %s", after, got, want)
		}
	}
	found.cluster.Status.LeaseMilliseconds = 0
	if got := found.leaseEndsIn(answered); got != 0 {
		t.Errorf("it has no lease, and the next look is due in %s", got)
	}
}
