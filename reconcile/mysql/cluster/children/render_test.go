package children

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

const agentImage = "registry.example/mysql-operator:1"

func renderSet(t *testing.T, cluster v1.MySQLCluster) appsv1.StatefulSet {
	t.Helper()
	spec := StatefulSetInput{AgentImage: agentImage, Scale: WantedReplicas(cluster), ClaimSize: WantedStorage(cluster)}
	return as[appsv1.StatefulSet](t, StatefulSet(NamesOf(cluster), cluster, spec))
}

func container(t *testing.T, spec corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		if container.Name == name {
			return container
		}
	}
	t.Fatalf("no container %s", name)
	return corev1.Container{}
}

func TestMembersPassPodSecurityRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, port := range map[string]int32{"as usual": 3306, "on a port below 1024": 306} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := renderSet(t, aCluster(3, func(c *v1.MySQLCluster) { c.Spec.Port = port }))
			template := set.Spec.Template
			level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec))
			if !result.Allowed {
				t.Errorf("%s: %s", result.ForbiddenReason(), result.ForbiddenDetail())
			}
			if *template.Spec.SecurityContext.RunAsUser == 0 {
				t.Error("it runs as root")
			}
			for _, container := range append(template.Spec.InitContainers, template.Spec.Containers...) {
				if read := container.SecurityContext.ReadOnlyRootFilesystem; read == nil || !*read {
					t.Errorf("%s can write to its image", container.Name)
				}
			}
		})
	}
}

// TestMembersNoticeDeadClients: after two minutes. Linux needs two hours, during which dead clients would hold their locks.
func TestMembersNoticeDeadClients(t *testing.T) {
	t.Parallel()
	keepAlive := map[string]string{"net.ipv4.tcp_keepalive_time": "60", "net.ipv4.tcp_keepalive_intvl": "10", "net.ipv4.tcp_keepalive_probes": "6"}
	lowPort := maps.Clone(keepAlive)
	lowPort["net.ipv4.ip_unprivileged_port_start"] = "0"
	for port, want := range map[int32]map[string]string{3306: keepAlive, 306: lowPort} {
		got := map[string]string{}
		for _, sysctl := range renderSet(t, aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Port = port })).Spec.Template.Spec.SecurityContext.Sysctls {
			got[sysctl.Name] = sysctl.Value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("sysctls of Pods with port %d (-want +got):\n%s", port, diff)
		}
	}
}

func TestMembersMountNoTokenAndOnlyTheirSecrets(t *testing.T) {
	t.Parallel()
	spec := renderSet(t, aCluster(2)).Spec.Template.Spec
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Error("the Pods mount a token")
	}
	account := as[corev1.ServiceAccount](t, ServiceAccount(Names{Namespace: "shop", Cluster: "db"}))
	if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken || account.Name != spec.ServiceAccountName {
		t.Errorf("the ServiceAccount %s gives its token away, or is not the Pods' %s", account.Name, spec.ServiceAccountName)
	}
	mounted := map[string][]string{}
	for _, volume := range spec.Volumes {
		if volume.Projected != nil {
			t.Errorf("volume %s is projected: it could hold a token", volume.Name)
		}
		if volume.Secret != nil {
			var keys []string
			for _, item := range volume.Secret.Items {
				keys = append(keys, item.Key)
			}
			mounted[volume.Secret.SecretName] = keys
			if mode := volume.Secret.DefaultMode; mode == nil || *mode&0o007 != 0 {
				t.Errorf("every user can read volume %s", volume.Name)
			}
		}
	}
	// Of the user's Secret only the password: the members do not need the rest.
	want := map[string][]string{"db-secret": {agent.PasswordKey}, "db-accounts": nil, "db-tls": nil}
	if diff := cmp.Diff(want, mounted); diff != "" {
		t.Errorf("the Secrets mounted (-want +got):\n%s", diff)
	}
	for _, mount := range container(t, spec, ContainerMysqld).VolumeMounts {
		if mount.Name == "accounts" || mount.Name == "root" {
			t.Errorf("mysqld's container can read %s", mount.Name)
		}
	}
	if content, _ := json.Marshal(spec); strings.Contains(string(content), "secretKeyRef") {
		t.Error("a password is in the environment")
	}
}

// Settings decide who may log in, skip_grant_tables for example. Only a client that may change the StatefulSet may change them.
func TestMembersTakeTheirSettingsFromTheirPod(t *testing.T) {
	t.Parallel()
	cluster := aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Config = map[string]string{"init_connect": "$(POD_NAME) $$ $"} })
	spec := renderSet(t, cluster).Spec.Template.Spec
	for _, volume := range spec.Volumes {
		if volume.ConfigMap != nil {
			t.Errorf("volume %s is a ConfigMap, which others may write", volume.Name)
		}
	}
	var given string
	for _, variable := range container(t, spec, ContainerPrepare).Env {
		if variable.Name == agent.EnvSettings {
			given = variable.Value
		}
	}
	// Kubernetes reads $$ as $, and expands what follows a single $.
	halves := strings.Split(given, "$$")
	if got := strings.Join(halves, "$"); got != RenderConfig(cluster) || strings.Contains(strings.Join(halves, ""), "$") {
		t.Errorf("the member is given\n%s\nwant, with every $ twice,\n%s", given, RenderConfig(cluster))
	}
	changed := aCluster(2, func(c *v1.MySQLCluster) { c.Spec.Config = map[string]string{"max_connections": "5"} })
	if cmp.Equal(spec, renderSet(t, changed).Spec.Template.Spec) {
		t.Error("another setting makes no new Pods")
	}
}

// TestMysqldIsNotProcessOne: it would lose a SIGTERM in its first second (docs/adr/0015).
func TestMysqldIsNotProcessOne(t *testing.T) {
	t.Parallel()
	spec := renderSet(t, aCluster(2)).Spec.Template.Spec
	if command := container(t, spec, ContainerMysqld).Command; len(command) < 3 || !slices.Equal(command[:3], []string{agent.SupervisorPath, agent.RunDir, "mysqld"}) {
		t.Errorf("mysqld is started by %v", command)
	}
	mounts := map[string]bool{} // whether they are read-only
	for _, one := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, mount := range one.VolumeMounts {
			if mount.MountPath == agent.ProgramDir {
				mounts[one.Name] = mount.ReadOnly
			}
		}
	}
	if want := map[string]bool{ContainerPrepare: false, ContainerMysqld: true}; !maps.Equal(mounts, want) {
		t.Errorf("the program is mounted by %v, want %v", mounts, want)
	}
}

func TestProbesAskTheAgent(t *testing.T) {
	t.Parallel()
	spec := renderSet(t, aCluster(2)).Spec.Template.Spec
	mysqld, sidecar := container(t, spec, ContainerMysqld), container(t, spec, ContainerAgent)
	probes := map[string]*corev1.Probe{"/startupz": mysqld.StartupProbe, "/readyz": mysqld.ReadinessProbe, "/livez": mysqld.LivenessProbe, "/healthz": sidecar.LivenessProbe}
	for path, probe := range probes {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.IntValue() != agent.Port || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("%s: got %+v, want it asked of the agent over TLS", path, probe)
		}
	}
	if day := int32(24 * 60 * 60); mysqld.StartupProbe.PeriodSeconds*mysqld.StartupProbe.FailureThreshold < day {
		t.Error("a long crash recovery would be interrupted, which makes it longer")
	}
	if longestPause := int32(5 * 60); mysqld.LivenessProbe.PeriodSeconds*mysqld.LivenessProbe.FailureThreshold <= longestPause {
		t.Error("an agent that crashes again and again would have its healthy mysqld restarted")
	}
	if sidecar.ReadinessProbe != nil {
		t.Error("the agent's readiness would count in addition to mysqld's")
	}
}

func TestStatefulSetKeepsData(t *testing.T) {
	t.Parallel()
	class := "fast"
	set := renderSet(t, aCluster(3, func(c *v1.MySQLCluster) {
		c.Spec.StorageClassName, c.Spec.Storage = &class, resource.MustParse("5Gi")
	}))
	retention := set.Spec.PersistentVolumeClaimRetentionPolicy
	if retention == nil || retention.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType || retention.WhenScaled != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		t.Errorf("volumes are removed: %+v", retention)
	}
	claim := set.Spec.VolumeClaimTemplates[0]
	if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; claim.Name != "data" || size.String() != "5Gi" || *claim.Spec.StorageClassName != class {
		t.Errorf("got claim %s of %s", claim.Name, size.String())
	}
	if claim.Labels[LabelInstance] != "db" || claim.Labels[LabelManagedBy] != ManagedBy {
		t.Errorf("a retained volume could not be found again by its labels: %v", claim.Labels)
	}
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || *set.Spec.Replicas != 3 || set.Spec.ServiceName != "db-pods" {
		t.Errorf("got %s, %d, %s", set.Spec.PodManagementPolicy, *set.Spec.Replicas, set.Spec.ServiceName)
	}
	if unset := renderSet(t, aCluster(1)).Spec.VolumeClaimTemplates[0].Spec.StorageClassName; unset != nil {
		t.Errorf("the default class is overridden by %q", *unset)
	}
}

func TestPodsRollOnlyWhenSomethingInThemChanges(t *testing.T) {
	t.Parallel()
	template := func(change ...func(*v1.MySQLCluster)) corev1.PodTemplateSpec {
		return renderSet(t, aCluster(2, change...)).Spec.Template
	}
	base := template()
	same := map[string]func(*v1.MySQLCluster){
		"a size":      func(c *v1.MySQLCluster) { *c.Spec.Replicas = 5 },
		"more room":   func(c *v1.MySQLCluster) { c.Spec.Storage = resource.MustParse("9Gi") },
		"a backup":    func(c *v1.MySQLCluster) { c.Spec.FromBackup = "old" },
		"durability":  func(c *v1.MySQLCluster) { c.Spec.Durability.WhenReplicasLost = v1.Block },
		"a new epoch": func(c *v1.MySQLCluster) { c.Status.Epoch, c.Status.Primary = 9, "db-1" },
	}
	for name, change := range same {
		if diff := cmp.Diff(base, template(change)); diff != "" {
			t.Errorf("%s would restart the members:\n%s", name, diff)
		}
	}
	other := map[string]func(*v1.MySQLCluster){
		"an image":  func(c *v1.MySQLCluster) { c.Spec.Image = "mysql:9" },
		"a setting": func(c *v1.MySQLCluster) { c.Spec.Config = map[string]string{"max_connections": "500"} },
		"memory": func(c *v1.MySQLCluster) {
			c.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
		},
	}
	for name, change := range other {
		if cmp.Equal(base, template(change)) {
			t.Errorf("%s does not reach the members", name)
		}
	}
}

// The longest name that the schema accepts, and members of two digits.
func TestNamesFitAtTheEdge(t *testing.T) {
	t.Parallel()
	cluster := aCluster(2, func(c *v1.MySQLCluster) { c.Name, c.Namespace = strings.Repeat("n", 40), strings.Repeat("s", 63) })
	n := NamesOf(cluster)
	for what, name := range map[string]string{
		"StatefulSet": n.Cluster, "read Service": n.ReadService(), "headless Service": n.PodsService(), "ConfigMap": n.ConfigMap(), "accounts": n.AccountsSecret(), "certificate": n.CertificateSecret(),
		"CAs to trust": n.TrustMap(), "member": n.Member(99), "revision label": n.Cluster + "-5c9f8b7d6f",
	} {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%s %q: %v", what, name, problems)
		}
	}
	if problems := validation.IsDNS1123Subdomain(n.AuthoritySecret()); len(problems) > 0 {
		t.Errorf("CA %q: %v", n.AuthoritySecret(), problems)
	}
	if problems := validation.IsDNS1123Subdomain(n.Host(n.Member(99))); len(problems) > 0 {
		t.Errorf("host of a member: %v", problems)
	}
	if len(n.Host(n.Member(99))) > 255 { // SOURCE_HOST accepts 255 (manual, "CHANGE REPLICATION SOURCE TO Statement")
		t.Error("MySQL cannot name its source")
	}
	set := renderSet(t, cluster)
	for key, value := range set.Spec.Template.Labels {
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			t.Errorf("label %s: %v", key, problems)
		}
	}
}

func TestOrdinalOfAName(t *testing.T) {
	t.Parallel()
	n := Names{Namespace: "shop", Cluster: "db"}
	for name, want := range map[string]int{"db-0": 0, "db-12": 12} {
		if got, ok := n.Ordinal(name); !ok || got != want {
			t.Errorf("%s: got %d, %t", name, got, ok)
		}
	}
	for _, name := range []string{"db", "db-", "db-x", "db-01", "db--1", "db-+1", "db-1-0", "other-0", "dbs-0"} {
		if got, ok := n.Ordinal(name); ok {
			t.Errorf("%s was taken for member %d", name, got)
		}
	}
}

// TestTheAgentOutlivesMysqld: kubelet stops sidecars after the other containers, so the agent can close mysqld and report how it ends.
func TestTheAgentOutlivesMysqld(t *testing.T) {
	t.Parallel()
	spec := renderSet(t, aCluster(2)).Spec.Template.Spec
	last := spec.InitContainers[len(spec.InitContainers)-1]
	if last.Name != ContainerAgent || last.RestartPolicy == nil || *last.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("the last init container is %s, with the restart policy %v; want the agent as a sidecar", last.Name, last.RestartPolicy)
	}
	if len(spec.Containers) != 1 || spec.Containers[0].Name != ContainerMysqld {
		t.Errorf("the containers are %+v, want mysqld alone: kubelet stops all of them at once", spec.Containers)
	}
}

func TestServicesRoute(t *testing.T) {
	t.Parallel()
	cluster := aCluster(3)
	n := NamesOf(cluster)
	write := as[corev1.Service](t, WriteService(n, cluster, "db-2"))
	if write.Name != "db" || write.Spec.Selector[LabelPod] != "db-2" || write.Spec.Selector[LabelInstance] != "db" {
		t.Errorf("writes go to %v", write.Spec.Selector)
	}
	replicas := as[corev1.Service](t, ReadService(n, cluster, "db-2", false))
	if replicas.Name != "db-read" || replicas.Spec.Selector[LabelRole] != RoleReplica || replicas.Spec.Selector[LabelPod] != "" {
		t.Errorf("reads go to %v", replicas.Spec.Selector)
	}
	alone := as[corev1.Service](t, ReadService(n, cluster, "db-2", true))
	if alone.Spec.Selector[LabelPod] != "db-2" || alone.Spec.Selector[LabelRole] != "" {
		t.Errorf("reads of a cluster without replicas go to %v", alone.Spec.Selector)
	}
	identity := as[corev1.Service](t, PodsService(n, cluster))
	if identity.Spec.ClusterIP != corev1.ClusterIPNone || !identity.Spec.PublishNotReadyAddresses {
		t.Errorf("members cannot find each other before they are ready: %+v", identity.Spec)
	}
	for _, service := range []corev1.Service{write, replicas, alone} {
		if service.Spec.PublishNotReadyAddresses || service.Spec.Ports[0].Port != 3306 {
			t.Errorf("%s reaches members that are not ready, or to port %d", service.Name, service.Spec.Ports[0].Port)
		}
	}
}

func TestBudgetLetsOneMemberGoAtATime(t *testing.T) {
	t.Parallel()
	got := as[policyv1.PodDisruptionBudget](t, PodDisruptionBudget(Names{Namespace: "shop", Cluster: "db"}))
	if got.Spec.MaxUnavailable == nil || got.Spec.MaxUnavailable.IntValue() != 1 || got.Spec.Selector.MatchLabels[LabelInstance] != "db" {
		t.Errorf("got %+v", got.Spec)
	}
}
