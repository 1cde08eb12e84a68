package deploy

import (
	"maps"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/mysql-operator/mysql-operator/schema"
)

// workload is another user's Deployment whose Pod template has these annotations.
func workload(annotations map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "theirs"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"template": map[string]any{
				"metadata": metadata,
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
			},
		},
	}}
}

// TestRestartsStampOnly: webhooks that inject containers act on annotations of a Pod template.
func TestRestartsStampOnly(t *testing.T) {
	t.Parallel()
	type notes = map[string]any
	for name, test := range map[string]struct {
		before, after notes
		want          bool
	}{
		"a first stamp":           {nil, notes{"magalix.com/config-app": "1"}, true},
		"another stamp":           {notes{"a": "b", "magalix.com/config-app": "1"}, notes{"a": "b", "magalix.com/config-app": "2"}, true},
		"a stamp removed":         {notes{"magalix.com/config-app": "1"}, notes{}, true},
		"an image to be injected": {notes{"a": "b"}, notes{"a": "b", "sidecar.istio.io/proxyImage": "evil"}, false},
		"an annotation changed":   {notes{"sidecar.istio.io/proxyImage": "theirs"}, notes{"sidecar.istio.io/proxyImage": "evil"}, false},
		"an annotation removed":   {notes{"sidecar.istio.io/inject": "false"}, nil, false},
	} {
		if allowed := evaluate(t, restart(), workload(test.before), workload(test.after)); allowed != test.want {
			t.Errorf("%s: %v", name, allowed)
		}
	}
}

// TestRestartsChangeNothingElse: with a stamp the operator still cannot change another user's workload.
func TestRestartsChangeNothingElse(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	stamped := fields{"magalix.com/config-app": "1"}
	for name, change := range map[string]func(object, spec, template fields){
		"the number of Pods":        func(_, spec, _ fields) { spec["replicas"] = int64(0) },
		"how Pods are replaced":     func(_, spec, _ fields) { spec["strategy"] = fields{"type": "Recreate"} },
		"how members are replaced":  func(_, spec, _ fields) { spec["updateStrategy"] = fields{"type": "OnDelete"} },
		"whether they are replaced": func(_, spec, _ fields) { spec["paused"] = true },
		"when a Pod is ready":       func(_, spec, _ fields) { spec["minReadySeconds"] = int64(3600) },
		"what can be rolled back":   func(_, spec, _ fields) { spec["revisionHistoryLimit"] = int64(0) },
		"whether claims are kept":   func(_, spec, _ fields) { spec["persistentVolumeClaimRetentionPolicy"] = fields{"whenScaled": "Delete"} },
		"a field removed":           func(_, spec, _ fields) { delete(spec, "selector") },
		"the image":                 func(_, _, template fields) { template["spec"] = fields{"containers": []any{}} },
		"a label of the Pods":       func(_, _, template fields) { template["metadata"].(fields)["labels"] = fields{"app": "shop"} },
		"their finalizers":          func(_, _, template fields) { template["metadata"].(fields)["finalizers"] = []any{"a.b/c"} },
		"its labels":                func(object, _, _ fields) { object["metadata"].(fields)["labels"] = fields{"a": "b"} },
		"its annotations":           func(object, _, _ fields) { object["metadata"].(fields)["annotations"] = fields{"a": "b"} },
		"its owners": func(object, _, _ fields) {
			object["metadata"].(fields)["ownerReferences"] = []any{fields{"name": "none"}}
		},
	} {
		after := workload(stamped)
		spec := after.Object["spec"].(fields)
		change(after.Object, spec, spec["template"].(fields))
		if evaluate(t, restart(), workload(nil), after) {
			t.Errorf("with the stamp it may change %s", name)
		}
	}
}

// TestPodsOfTheirOwnLabelsOfSELinux: some SELinux labels remove the node's isolation of a container.
func TestPodsOfTheirOwnLabelsOfSELinux(t *testing.T) {
	t.Parallel()
	labels := map[string]any{"seLinuxOptions": map[string]any{"type": "spc_t"}}
	pod, container := workload(nil), workload(nil)
	podOf(pod)["securityContext"] = labels
	podOf(container)["containers"].([]any)[0].(map[string]any)["securityContext"] = labels
	const reachesNode = "the operator makes no Pods with access to the node"
	if !isAllowed(t, reachesNode, workload(nil), workload(nil)) {
		t.Error("a plain Pod is refused")
	}
	for _, one := range []*unstructured.Unstructured{pod, container} {
		if isAllowed(t, reachesNode, workload(nil), one) {
			t.Errorf("allowed: %v", podOf(one))
		}
	}
}

// podOf is the Pod in a workload's template.
func podOf(of *unstructured.Unstructured) map[string]any {
	return of.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
}

// isAllowed reports whether the rule about workloads whose message begins with this text allows an update.
func isAllowed(t *testing.T, message string, before, after *unstructured.Unstructured) bool {
	t.Helper()
	limits := Limits{}.workloads()
	variables := []string{}
	for _, one := range limits.variables {
		variables = append(variables, "variables."+one.Name, "("+one.Expression+")")
	}
	for _, rule := range limits.rules {
		if strings.HasPrefix(rule.Message, message) {
			return evaluate(t, strings.NewReplacer(variables...).Replace(rule.Expression), before, after)
		}
	}
	t.Fatalf("no rule says %q", message)
	return false
}

// TestPodsChooseNeitherNodeNorName: the operator keeps what users wrote into a workload, and adds nothing to it. Values that the API server
// fills in are allowed.
func TestPodsChooseNeitherNodeNorName(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	const node, name = "the operator sets no node", "the operator sets no host names"
	zone, disk := fields{"nodeAffinity": fields{"zone": "a"}}, fields{"nodeAffinity": fields{"disk": "ssd"}}
	for story, test := range map[string]struct {
		before, after fields
		refused       string
	}{
		"what the API server fills in": {nil, fields{"schedulerName": "default-scheduler", "dnsPolicy": "ClusterFirst"}, ""},
		"where it looks up names":      {nil, fields{"dnsPolicy": "None", "dnsConfig": fields{}, "hostAliases": []any{}}, ""},
		"members on different nodes":   {nil, fields{"affinity": fields{"podAntiAffinity": fields{"a": "b"}}}, ""},
		"their nodes, kept":            {fields{"nodeSelector": fields{"a": "b"}, "affinity": zone}, fields{"nodeSelector": fields{"a": "b"}, "affinity": zone}, ""},
		"their scheduler, kept":        {fields{"schedulerName": "theirs"}, fields{"schedulerName": "theirs"}, ""},
		"their names, kept":            {fields{"hostname": "a", "subdomain": "b"}, fields{"hostname": "a", "subdomain": "b"}, ""},
		"a node by its labels":         {nil, fields{"nodeSelector": fields{"a": "b"}}, node},
		"other nodes than theirs":      {fields{"affinity": zone}, fields{"affinity": disk}, node},
		"nodes of a user's Pods":       {nil, fields{"affinity": fields{"podAffinity": fields{"a": "b"}}}, node},
		"another scheduler":            {fields{"schedulerName": "default-scheduler"}, fields{"schedulerName": "theirs"}, node},
		"their scheduler, removed":     {fields{"schedulerName": "theirs"}, fields{"schedulerName": "default-scheduler"}, node},
		"a Service's name":             {nil, fields{"hostname": "postgres", "subdomain": "prod"}, name},
		"a domain of one's own":        {fields{"hostname": "postgres"}, fields{"hostname": "postgres", "subdomain": "prod"}, name},
		"a name that has the domain":   {nil, fields{"setHostnameAsFQDN": true}, name},
	} {
		before, after := workload(nil), workload(nil)
		maps.Copy(podOf(before), test.before)
		maps.Copy(podOf(after), test.after)
		for _, rule := range []string{node, name} {
			if allowed := isAllowed(t, rule, before, after); allowed == (rule == test.refused) {
				t.Errorf("%s: %q allows it: %v", story, rule, allowed)
			}
		}
	}
}

// TestStatefulSetsHaveAServiceOfTheirOwn: a member's address contains the Service that its StatefulSet names.
func TestStatefulSetsHaveAServiceOfTheirOwn(t *testing.T) {
	t.Parallel()
	set := func(service string) *unstructured.Unstructured {
		made := workload(nil)
		made.SetKind("StatefulSet")
		made.Object["spec"].(map[string]any)["serviceName"] = service
		return made
	}
	for story, test := range map[string]struct {
		before, after *unstructured.Unstructured
		want          bool
	}{
		"its own":            {workload(nil), set("theirs-pods"), true},
		"as it was":          {set("of-before"), set("of-before"), true},
		"a user's":           {workload(nil), set("kafka"), false},
		"the same, by a set": {set("theirs-pods"), set("kafka"), false},
		"of no set":          {workload(nil), workload(nil), true},
	} {
		if allowed := isAllowed(t, "the Service of the operator's StatefulSets", test.before, test.after); allowed != test.want {
			t.Errorf("%s: %v", story, allowed)
		}
	}
}

// TestServicesMayBeMarked: no controller acts on the digest of what was applied last, nor on what common webhooks add to every Service.
func TestServicesMayBeMarked(t *testing.T) {
	t.Parallel()
	service := func(annotations map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "db", "annotations": annotations},
			"spec": map[string]any{"selector": map[string]any{OwnerLabel: Name}},
		}}
	}
	type notes = map[string]any
	for name, test := range map[string]struct {
		before, after notes
		want          bool
	}{
		"a first mark":                   {notes{}, notes{schema.AppliedAnnotation: "1"}, true},
		"another mark":                   {notes{schema.AppliedAnnotation: "1"}, notes{schema.AppliedAnnotation: "2"}, true},
		"a mark next to a cloud's":       {notes{"cloud/id": "1"}, notes{"cloud/id": "1", schema.AppliedAnnotation: "2"}, true},
		"a name":                         {notes{}, notes{"external-dns.alpha.kubernetes.io/hostname": "bank"}, false},
		"Linkerd's webhook":              {notes{}, notes{"config.linkerd.io/opaque-ports": "3306"}, true},
		"GKE's webhook":                  {notes{}, notes{"cloud.google.com/neg": `{"ingress":true}`}, true},
		"groups of endpoints in a cloud": {notes{}, notes{"cloud.google.com/neg": `{"exposed_ports":{"3306":{"name":"bank"}}}`}, false},
		"a cloud's annotation, changed":  {notes{"cloud/id": "1"}, notes{"cloud/id": "2"}, false},
		"a cloud's annotation, removed":  {notes{"cloud/id": "1"}, notes{}, false},
	} {
		allowed := true
		for _, rule := range (Limits{}).contents().rules {
			expression := strings.ReplaceAll(rule.Expression, "variables.before", "dyn(oldObject)")
			allowed = allowed && evaluate(t, expression, service(test.before), service(test.after))
		}
		if allowed != test.want {
			t.Errorf("%s: %v", name, allowed)
		}
	}
}

// evaluate reports whether an expression is true for an update.
func evaluate(t *testing.T, expression string, before, after *unstructured.Unstructured) bool {
	t.Helper()
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	condition := compiler.CompileCondition([]cel.ExpressionAccessor{&matchconditions.MatchCondition{Expression: expression}}, cel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	if faults := condition.CompilationErrors(); len(faults) > 0 {
		t.Fatal(faults)
	}
	kind, resource := apischema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, apischema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	attributes := admission.NewAttributesRecord(after, before, kind, "here", "theirs", resource, "", admission.Update, nil, false, nil)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(after), VersionedOldObject: admission.NewLazyObject(before)}
	request := &admissionv1.AdmissionRequest{Operation: admissionv1.Update}
	request.Resource.Group = after.GroupVersionKind().Group
	request.Resource.Resource = strings.ToLower(after.GetKind()) + "s"
	results, _, err := condition.ForInput(t.Context(), versioned, request, cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Error != nil {
		t.Fatal(results[0].Error)
	}
	return results[0].EvalResult.Value() == true
}
