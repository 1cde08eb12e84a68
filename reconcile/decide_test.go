package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/schema"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://api", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	maps := apischema.GroupResource{Resource: "configmaps"}
	guarded := apierrors.NewTooManyRequests("not now", 1)
	guarded.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	tests := map[string]struct {
		outcome Outcome
		found   state
		err     error
		want    decision
	}{
		"all is well":                               {want: decision{result: resultDone}},
		"all is well, look again later":             {outcome: Outcome{RequeueAfter: time.Minute}, want: decision{result: resultDone, requeueAfter: time.Minute}},
		"the object is gone":                        {found: state{gone: true}, want: decision{result: resultGone}},
		"the cache is behind":                       {found: state{behind: true}, want: decision{result: resultBehind, requeueAfter: requeueForCache}},
		"another client changed it meanwhile":       {err: apierrors.NewConflict(maps, "a", errors.New("changed")), want: decision{result: resultConflict}},
		"the API server is down":                    {err: fmt.Errorf("get x: %w", refused), want: decision{result: resultUnavailable, requeueAfter: requeueForServer}},
		"the API server is overloaded":              {err: apierrors.NewTooManyRequests("slow down", 1), want: decision{result: resultUnavailable, requeueAfter: requeueForServer}},
		"a disruption budget forbids eviction":      {err: guarded, want: decision{result: resultFailed}},
		"the pass used up its time":                 {err: &url.Error{Err: context.DeadlineExceeded}, want: decision{result: resultFailed}},
		"the kind panicked":                         {err: &panicError{value: "nil map"}, want: decision{result: resultPanicked}},
		"an error asks for back-off, not for Again": {outcome: Outcome{RequeueAfter: time.Hour}, err: errors.New("no such secret"), want: decision{result: resultFailed}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decide(test.outcome, test.found, test.err)
			if got.result != test.want.result || got.requeueAfter != test.want.requeueAfter || !errors.Is(got.err, test.err) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestWhatKeepsFailingIsTold: without the event, an API server error that no kind can explain, such as an exhausted range of service
// addresses, would only be in the log.
func TestWhatKeepsFailingIsTold(t *testing.T) {
	t.Parallel()
	full := apierrors.NewInternalError(errors.New("failed to allocate a serviceIP: range is full"))
	for name, test := range map[string]struct {
		err      error
		failures int
		want     bool
	}{
		"it fails for a moment":              {full, failuresUntilTold - 1, false},
		"it keeps failing":                   {full, failuresUntilTold, true},
		"all is well again":                  {nil, failuresUntilTold, false},
		"another client keeps changing it":   {apierrors.NewConflict(apischema.GroupResource{Resource: "configmaps"}, "a", errors.New("changed")), failuresUntilTold, false},
		"the API server is down":             {apierrors.NewTooManyRequests("slow down", 1), failuresUntilTold, false},
		"it panics, which has its own event": {&panicError{value: "nil map"}, failuresUntilTold, false},
	} {
		events := persistentFailureEvents(test.err, test.failures)
		if told := len(events) == 1 && strings.Contains(events[0].Note, "range is full"); told != test.want || len(events) > 1 {
			t.Errorf("%s: %+v", name, events)
		}
	}
}

func TestContainedMakesAnErrorOfAPanic(t *testing.T) {
	t.Parallel()
	err := recoverPanic(func() error { panic("at the disco") })
	var panicked *panicError
	if !errors.As(err, &panicked) || panicked.value != "at the disco" || len(panicked.stack) == 0 {
		t.Errorf("got %v, want the panic with its stack", err)
	}
}

func TestIsNamespaceTerminating(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(apischema.GroupResource{Resource: "services"}, "a", errors.New("no"))
	if IsNamespaceTerminating(forbidden) {
		t.Error("a plain refusal was taken for a terminating namespace")
	}
	forbidden.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	if !IsNamespaceTerminating(fmt.Errorf("create services shop/a: %w", forbidden)) {
		t.Error("the end of the namespace was not recognised")
	}
}

func TestForeignness(t *testing.T) {
	t.Parallel()
	yes := true
	reference := func(kind, name, uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "test.example.com/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
	}
	tests := map[string]struct {
		owners  []metav1.OwnerReference
		foreign bool
		want    ForeignError
	}{
		"ours":                           {owners: reference("Probe", "owner", "new")},
		"without a controller":           {foreign: true, want: ForeignError{Resource: configMaps(), Namespace: "shop", Name: "a"}},
		"another controller's":           {owners: reference("Deployment", "web", "x"), foreign: true, want: ForeignError{Resource: configMaps(), Namespace: "shop", Name: "a", Controller: "Deployment/web"}},
		"another object's of our kind":   {owners: reference("Probe", "other", "x"), foreign: true, want: ForeignError{Resource: configMaps(), Namespace: "shop", Name: "a", Controller: "Probe/other"}},
		"our deleted predecessor's":      {owners: reference("Probe", "owner", "old"), foreign: true, want: ForeignError{Resource: configMaps(), Namespace: "shop", Name: "a", Controller: "Probe/owner", Predecessor: true}},
		"a namesake's, of another group": {owners: []metav1.OwnerReference{{APIVersion: "other/v1", Kind: "Probe", Name: "owner", UID: "x", Controller: &yes}}, foreign: true, want: ForeignError{Resource: configMaps(), Namespace: "shop", Name: "a", Controller: "Probe/owner"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := child("a", "1", nil)
			object.SetOwnerReferences(test.owners)
			us := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.example.com/v1", "kind": "Probe", "metadata": map[string]any{"name": "owner", "namespace": "shop", "uid": "new"}}}

			err := checkController(us, object, configMaps())
			var foreign *ForeignError
			if errors.As(err, &foreign) != test.foreign {
				t.Fatalf("got %v, want foreign: %v", err, test.foreign)
			}
			if test.foreign {
				same(t, *foreign, test.want)
			}
		})
	}
}

func TestCheckOwnership(t *testing.T) {
	t.Parallel()
	yes, ours := true, map[string]string{"managed-by": "us", "instance": "owner"}
	madeBy := func(manager string, operation metav1.ManagedFieldsOperationType) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}, {Manager: manager, Operation: operation}}
	}
	applied := madeBy(ManagerChildren, metav1.ManagedFieldsOperationApply)
	of := func(name, uid string, controller *bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "test.example.com/v1", Kind: "Probe", Name: name, UID: types.UID(uid), Controller: controller}}
	}
	for story, test := range map[string]struct {
		labels  map[string]string
		fields  []metav1.ManagedFieldsEntry
		owners  []metav1.OwnerReference
		foreign bool
	}{
		"the owner's own":                                    {labels: ours, fields: applied, owners: of("owner", "new", &yes)},
		"the owner's own, after a user changed it":           {owners: of("owner", "new", &yes)},
		"an orphan":                                          {labels: ours, fields: applied},
		"an orphan with one more label":                      {labels: map[string]string{"managed-by": "us", "instance": "owner", "team": "a"}, fields: applied},
		"an orphan that was created, not applied":            {labels: ours, fields: madeBy(ManagerChildren, metav1.ManagedFieldsOperationUpdate)},
		"an orphan with another owner that is no controller": {labels: ours, fields: applied, owners: of("other", "x", nil)},
		"another owner's orphan":                             {labels: map[string]string{"managed-by": "us", "instance": "other"}, fields: applied, foreign: true},
		"an orphan whose labels a user removed":              {fields: applied, foreign: true},
		"a copy of a manifest":                               {labels: ours, fields: madeBy("kubectl", metav1.ManagedFieldsOperationApply), foreign: true},
		"what we only labelled":                              {labels: ours, fields: madeBy(ManagerChildren+"-role", metav1.ManagedFieldsOperationApply), foreign: true},
		"an object that garbage collection will delete":      {labels: ours, fields: applied, owners: of("owner", "old", &yes), foreign: true},
		"an orphan that another object has adopted":          {labels: ours, fields: applied, owners: of("other", "x", &yes), foreign: true},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			object := child("a", "1", nil)
			object.SetLabels(test.labels)
			object.SetManagedFields(test.fields)
			object.SetOwnerReferences(test.owners)
			us := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.example.com/v1", "kind": "Probe", "metadata": map[string]any{"name": "owner", "namespace": "shop", "uid": "new"}}}
			client := &Client{owner: us}
			if err := client.CheckOwnership(object, configMaps(), ours); (err != nil) != test.foreign {
				t.Errorf("got %v, want it foreign: %t", err, test.foreign)
			}
			if err := client.CheckOwnership(object, configMaps(), nil); err == nil && !metav1.IsControlledBy(object, us) {
				t.Error("it was adopted without labels that identify its owner")
			}
		})
	}
}

func TestControllerOwner(t *testing.T) {
	t.Parallel()
	yes := true
	kind := schema.Kind{Group: "test.example.com", Version: "v1", Kind: "Probe", Plural: "probes"}
	tests := map[string]struct {
		reference metav1.OwnerReference
		want      []types.NamespacedName
	}{
		"the controller, of the kind":            {reference: metav1.OwnerReference{APIVersion: "test.example.com/v1", Kind: "Probe", Name: "owner", Controller: &yes}, want: []types.NamespacedName{owner()}},
		"an earlier version of the kind":         {reference: metav1.OwnerReference{APIVersion: "test.example.com/v1beta1", Kind: "Probe", Name: "owner", Controller: &yes}, want: []types.NamespacedName{owner()}},
		"an owner that is not its controller":    {reference: metav1.OwnerReference{APIVersion: "test.example.com/v1", Kind: "Probe", Name: "owner"}},
		"a controller of another kind":           {reference: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "owner", Controller: &yes}},
		"a kind of the same name, another group": {reference: metav1.OwnerReference{APIVersion: "other/v1", Kind: "Probe", Name: "owner", Controller: &yes}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := child("a", "1", nil)
			object.SetOwnerReferences([]metav1.OwnerReference{test.reference})
			same(t, controllerOwner(object, kind), test.want)
		})
	}
}

func TestSameStatus(t *testing.T) {
	t.Parallel()
	ready, stalled := map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Stalled", "status": "False"}
	tests := map[string]struct {
		desired, present map[string]any
		want             bool
	}{
		"none yet":                          {desired: map[string]any{"phase": "New"}, want: false},
		"equal":                             {desired: map[string]any{"count": int64(1)}, present: map[string]any{"count": int64(1)}, want: true},
		"a field is dropped":                {desired: map[string]any{}, present: map[string]any{"phase": "New"}, want: false},
		"conditions in another order":       {desired: map[string]any{"conditions": []any{ready, stalled}}, present: map[string]any{"conditions": []any{stalled, ready}}, want: true},
		"a condition is dropped":            {desired: map[string]any{"conditions": []any{ready}}, present: map[string]any{"conditions": []any{stalled, ready}}, want: false},
		"another list's order does matter":  {desired: map[string]any{"members": []any{"a", "b"}}, present: map[string]any{"members": []any{"b", "a"}}, want: false},
		"both say nothing, one of them nil": {desired: map[string]any{}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sameStatus(test.desired, test.present); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestSetCondition(t *testing.T) {
	t.Parallel()
	early, late := metav1.NewTime(time.Unix(100, 5).UTC()), metav1.NewTime(time.Unix(200, 0).UTC())
	conditions := []metav1.Condition{}
	SetCondition(&conditions, metav1.Condition{Type: ConditionReady, Status: metav1.ConditionFalse, Reason: "Creating", LastTransitionTime: early})
	SetCondition(&conditions, metav1.Condition{Type: "Aspect", Status: metav1.ConditionTrue, Reason: "Set", LastTransitionTime: early})

	SetCondition(&conditions, metav1.Condition{Type: ConditionReady, Status: metav1.ConditionFalse, Reason: "Waiting", LastTransitionTime: late})
	whole := metav1.NewTime(time.Unix(100, 0).UTC())
	same(t, conditions, []metav1.Condition{
		{Type: "Aspect", Status: metav1.ConditionTrue, Reason: "Set", LastTransitionTime: whole},
		{Type: ConditionReady, Status: metav1.ConditionFalse, Reason: "Waiting", LastTransitionTime: whole},
	})

	SetCondition(&conditions, metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: "Done", LastTransitionTime: late})
	same(t, conditions[1].LastTransitionTime, late)
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status map[string]any
		want   string
	}{
		"just made":                    {want: "New"},
		"its phase":                    {status: map[string]any{"phase": "Degraded", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}, want: "Degraded"},
		"ready":                        {status: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}, want: "Ready"},
		"stuck":                        {status: map[string]any{"conditions": []any{map[string]any{"type": "Reconciling", "status": "True"}, map[string]any{"type": "Stalled", "status": "True"}}}, want: "Stalled"},
		"on its way":                   {status: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}, map[string]any{"type": "Reconciling", "status": "True"}}}, want: "Reconciling"},
		"neither ready nor on its way": {status: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Unknown"}}}, want: "NotReady"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: map[string]any{}}
			if test.status != nil {
				object.Object["status"] = test.status
			}
			if got := stateOf(object); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestTrimMetadata(t *testing.T) {
	t.Parallel()
	object := child("a", "1", nil)
	own := schema.MySQLGroup + "/expired"
	object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "others.example.com/note": "no", own: "yes"})
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate},
		{Manager: ManagerChildren, Operation: metav1.ManagedFieldsOperationApply},
		{Manager: ManagerChildren, Operation: metav1.ManagedFieldsOperationUpdate},
		{Manager: "mysql-operator-role", Operation: metav1.ManagedFieldsOperationApply},
		{Manager: ManagerStatus, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"},
		{Manager: "mysql-operators-cousin", Operation: metav1.ManagedFieldsOperationApply},
	})
	for range 2 { // a transform may be applied twice
		if _, err := TrimMetadata(object); err != nil {
			t.Fatal(err)
		}
		same(t, object.GetAnnotations(), map[string]string{own: "yes"})
		managers := []string{}
		for _, entry := range object.GetManagedFields() {
			managers = append(managers, entry.Manager)
		}
		same(t, managers, []string{ManagerChildren, "mysql-operator-role"})
	}
	if got, err := TrimMetadata("not an object"); err != nil || got != "not an object" {
		t.Errorf("another type was not returned unchanged: %v, %v", got, err)
	}
}

func TestRulesCoverWhatTheEngineDoesForAKind(t *testing.T) {
	t.Parallel()
	controller := Controller{
		Kind:    schema.Kind{Group: "test.example.com", Version: "v1", Kind: "Probe", Plural: "probes"},
		Watches: []Watch{{Resource: configMaps()}},
	}
	granted := grantedBy(controller)
	for _, needed := range []string{"watch probes.test.example.com", "patch probes/status.test.example.com", "update probes/finalizers.test.example.com", "list configmaps.", "create events.events.k8s.io"} {
		if !granted[needed] {
			t.Errorf("the rules do not grant %q", needed)
		}
	}
}

// A kind that owns nothing needs no permission on finalizers.
func TestRulesOfAKindWithoutChildren(t *testing.T) {
	t.Parallel()
	childless := Controller{Kind: schema.Kind{Group: "test.example.com", Version: "v1", Kind: "Probe", Plural: "probes"}, Childless: true}
	granted := grantedBy(childless)
	if granted["update probes/finalizers.test.example.com"] || !granted["patch probes/status.test.example.com"] {
		t.Errorf("it is granted %v", granted)
	}
}

// grantedBy returns the rules as "VERB RESOURCE.GROUP".
func grantedBy(controller Controller) map[string]bool {
	granted := map[string]bool{}
	for _, rule := range Rules(controller) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	return granted
}
