package transfer

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

var update = flag.Bool("update", false, "write the golden files again") //nolint:gochecknoglobals // how go test takes a flag

// toBucket is a location for which a Pod gets all Secrets and a service account.
func toBucket(location *v1.BackupLocation) {
	*location = v1.BackupLocation{URL: "s3://backups/shop/db/nightly?region=eu", Secret: "s3", ServiceAccountName: "cloud", EncryptionSecret: "keys"}
}

func jobs(t *testing.T) map[string]batchv1.Job {
	t.Helper()
	return map[string]batchv1.Job{
		"backup-to-volume": as[batchv1.Job](t, BackupJob(aBackup())),
		"backup-to-bucket": as[batchv1.Job](t, BackupJob(aBackup(func(o *BackupOrder) { toBucket(&o.Location); o.BandwidthLimit = 1 << 20; o.Deadline = 0 }))),
		"restore":          as[batchv1.Job](t, RestoreJob(aRestore())),
		"restore-from-bucket": as[batchv1.Job](t, RestoreJob(aRestore(func(o *RestoreOrder) {
			toBucket(&o.Location)
			o.BackupUID, o.Checksum, o.AdoptOnly, o.BandwidthLimit = "", "", true, 1<<20
			o.ServerSettings = map[string]string{"lower_case_table_names": "1", "innodb_page_size": "8K"}
		}))),
		"version": as[batchv1.Job](t, VersionJob(aQuestion())),
		"delete":  as[batchv1.Job](t, DeleteJob(aDeletion())),
		"delete-unfinished": as[batchv1.Job](t, DeleteJob(func() DeleteOrder {
			order := aDeletion()
			order.UnfinishedOnly = true
			return order
		}())),
	}
}

func TestJobsAreAsTheyWereLookedAt(t *testing.T) {
	t.Parallel()
	for name, job := range jobs(t) {
		content, err := yaml.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(golden, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(content)); diff != "" {
			t.Errorf("%s differs from %s; if that is meant: go test ./reconcile/mysql/transfer -update (-want +got):\n%s", name, golden, diff)
		}
	}
}

func TestPodsPassPodSecurityRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, job := range jobs(t) {
		template := job.Spec.Template
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec))
		if !result.Allowed {
			t.Errorf("%s: %s: %s", name, result.ForbiddenReason(), result.ForbiddenDetail())
		}
		if *template.Spec.SecurityContext.RunAsUser == 0 || *template.Spec.AutomountServiceAccountToken {
			t.Errorf("%s runs as root, or holds a token", name)
		}
		for _, container := range append(template.Spec.InitContainers, template.Spec.Containers...) {
			if read := container.SecurityContext.ReadOnlyRootFilesystem; read == nil || !*read {
				t.Errorf("%s: %s can write to its image", name, container.Name)
			}
			if len(container.Env) > 0 || len(container.EnvFrom) > 0 {
				t.Errorf("%s: %s has an environment: Secrets are files, and read again in every attempt", name, container.Name)
			}
		}
	}
}

// secretsOf returns the Secrets that a Pod mounts, with the keys that it needs.
func secretsOf(t *testing.T, spec corev1.PodSpec) map[string][]string {
	t.Helper()
	mounted := map[string][]string{}
	for _, volume := range spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		keys := []string{}
		for _, item := range volume.Secret.Items {
			keys = append(keys, item.Key)
		}
		mounted[volume.Secret.SecretName] = keys
		if mode := volume.Secret.DefaultMode; mode == nil || *mode&0o007 != 0 {
			t.Errorf("volume %s can be read by every user", volume.Name)
		}
	}
	return mounted
}

func TestPodsMountOnlyWhatTheyNeed(t *testing.T) {
	t.Parallel()
	all := jobs(t)
	s3 := []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "ca.crt", "endpoint", "endpoints"}
	tests := map[string]map[string][]string{
		"backup-to-volume":    {"db-tls": {}, "db-accounts": {mysqld.CloneUser}},
		"backup-to-bucket":    {"db-tls": {}, "db-accounts": {mysqld.CloneUser}, "s3": s3, "keys": {protocol.KeyRecipient}},
		"restore":             {"db-tls": {}},
		"restore-from-bucket": {"db-tls": {}, "s3": s3, "keys": {protocol.KeyIdentity}},
		"version":             {},
		// It runs without the cluster, and without the key.
		"delete": {},
	}
	for name, want := range tests {
		if diff := cmp.Diff(want, secretsOf(t, all[name].Spec.Template.Spec)); diff != "" {
			t.Errorf("%s mounts (-want +got):\n%s", name, diff)
		}
	}
}

// Azure's webhook gives an identity only to Pods with its label.
func TestPodsAskForAzuresIdentity(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		location v1.BackupLocation
		want     string
	}{
		"Azure, a service account": {v1.BackupLocation{URL: "azblob://backups/shop", ServiceAccountName: "cloud"}, "true"},
		"Azure, a Secret":          {v1.BackupLocation{URL: "azblob://backups/shop", Secret: "azure"}, ""},
		"another cloud":            {v1.BackupLocation{URL: "s3://backups/shop", ServiceAccountName: "cloud"}, ""},
	} {
		deletion := aDeletion()
		deletion.Location = test.location
		for _, job := range []batchv1.Job{
			as[batchv1.Job](t, BackupJob(aBackup(func(o *BackupOrder) { o.Location = test.location }))),
			as[batchv1.Job](t, RestoreJob(aRestore(func(o *RestoreOrder) { o.Location = test.location }))),
			as[batchv1.Job](t, DeleteJob(deletion)),
		} {
			if got := job.Spec.Template.Labels["azure.workload.identity/use"]; got != test.want || job.Labels["azure.workload.identity/use"] != "" {
				t.Errorf("%s: the Pods of %s have the label %q, the Job %q", name, job.Name, got, job.Labels["azure.workload.identity/use"])
			}
		}
	}
}

// A Pod that makes a backup need not be able to read one.
func TestASecretKeyIsInABackupsPodOnlyWhereThereIsNoOther(t *testing.T) {
	t.Parallel()
	job := as[batchv1.Job](t, BackupJob(aBackup(func(o *BackupOrder) { toBucket(&o.Location); o.EncryptionKey = protocol.KeyIdentity })))
	spec := job.Spec.Template.Spec
	if got := secretsOf(t, spec)["keys"]; !slices.Equal(got, []string{protocol.KeyIdentity}) {
		t.Errorf("it mounts %v", got)
	}
	if told := strings.Join(spec.Containers[0].Args, " "); !strings.Contains(told, "--identity-file=") || strings.Contains(told, "--recipient-file=") {
		t.Errorf("its arguments are %s", told)
	}
}

func TestARestoreCannotWriteToTheBackup(t *testing.T) {
	t.Parallel()
	spec := jobs(t)["restore"].Spec.Template.Spec
	paths := map[string]bool{}
	for _, mount := range spec.Containers[0].VolumeMounts {
		paths[mount.MountPath] = mount.ReadOnly
	}
	if !paths[storeDir] || paths[agent.VolumeDir] {
		t.Errorf("the backup and the data are mounted read-only: %v", paths)
	}
	for _, volume := range spec.Volumes {
		// kubelet gives the files of a volume to the Pod's group unless the volume itself is read-only.
		if source := volume.PersistentVolumeClaim; source != nil && source.ReadOnly != (volume.Name == "store") {
			t.Errorf("the volume %s is read-only: %t", volume.Name, source.ReadOnly)
		}
	}
}

func TestPodsAreGentleAndSmall(t *testing.T) {
	t.Parallel()
	for name, job := range jobs(t) {
		resources := job.Spec.Template.Spec.Containers[0].Resources
		// A quota may require a CPU request of every container.
		if asked := resources.Requests[corev1.ResourceCPU]; asked.IsZero() || asked.Cmp(resource.MustParse("10m")) > 0 {
			t.Errorf("%s requests %s of a CPU that mysqld could use", name, asked.String())
		}
		if limit := resources.Limits[corev1.ResourceMemory]; limit.Cmp(resource.MustParse("192Mi")) != 0 {
			t.Errorf("%s may use %s", name, limit.String())
		}
	}
}

func TestJobsTryAgainOnlyWhatIsOfUse(t *testing.T) {
	t.Parallel()
	for name, job := range jobs(t) {
		spec := job.Spec
		attempts := map[string]int32{"version": versionRetries}[name]
		if attempts == 0 {
			attempts = Retries
		}
		if spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever || *spec.BackoffLimit != attempts || *spec.PodReplacementPolicy != batchv1.Failed {
			t.Errorf("%s: %s, %d attempts, replaced when %s", name, spec.Template.Spec.RestartPolicy, *spec.BackoffLimit, *spec.PodReplacementPolicy)
		}
		rules := spec.PodFailurePolicy.Rules
		if container := rules[0].OnExitCodes.ContainerName; container == nil || *container != spec.Template.Spec.Containers[0].Name {
			t.Errorf("%s: any container that ends with status %d ends the Job: %+v", name, protocol.ExitRefused, rules[0])
		}
		if len(rules) != 2 || rules[0].Action != batchv1.PodFailurePolicyActionFailJob || rules[0].OnExitCodes.Values[0] != protocol.ExitRefused ||
			rules[1].Action != batchv1.PodFailurePolicyActionIgnore || rules[1].OnPodConditions[0].Type != corev1.DisruptionTarget {
			t.Errorf("%s: %+v", name, rules)
		}
		if spec.TTLSecondsAfterFinished != nil {
			t.Errorf("%s is deleted automatically, and its log with it", name)
		}
	}
	if deadline := jobs(t)["backup-to-volume"].Spec.ActiveDeadlineSeconds; deadline == nil || *deadline != 3600 {
		t.Errorf("deadline %v", deadline)
	}
	if deadline := jobs(t)["backup-to-bucket"].Spec.ActiveDeadlineSeconds; deadline != nil {
		t.Errorf("deadline %d without a deadline in the order", *deadline)
	}
}

func TestLabelsTellWhoseJobItIs(t *testing.T) {
	t.Parallel()
	for name, job := range jobs(t) {
		for key, value := range map[string]string{labelName: "mysql-backup", labelInstance: "db", labelManagedBy: managedBy} {
			if job.Labels[key] != value || job.Spec.Template.Labels[key] != value {
				t.Errorf("%s: label %s is %q", name, key, job.Labels[key])
			}
		}
		which := LabelBackup
		if strings.HasPrefix(name, "restore") || name == "version" {
			which = LabelRestore
		}
		if job.Labels[which] == "" || job.Spec.Template.Labels[which] == "" {
			t.Errorf("%s has no label %s", name, which)
		}
	}
}

func TestNamesFitHoweverLongAnInstanceIsCalled(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("very-long.", 25) + "name"
	seen := map[string]bool{}
	for _, instance := range []string{"nightly", "with.dots", "with-dots", long, long + "s", strings.Repeat("a", 53) + "-" + "bcdefgh"} {
		for _, suffix := range []string{"backup", "delete"} {
			name := JobName(instance, suffix)
			if faults := validation.IsDNS1123Label(name); len(faults) > 0 || len(name) > maxName {
				t.Errorf("%q: %v", name, faults)
			}
			if seen[name] {
				t.Errorf("two Jobs are called %q", name)
			}
			seen[name] = true
		}
		if faults := validation.IsValidLabelValue(LabelValue(instance)); len(faults) > 0 {
			t.Errorf("label %q: %v", LabelValue(instance), faults)
		}
	}
	if LabelValue(long) == LabelValue(long+"s") {
		t.Error("two instances have one label")
	}
	if JobName("nightly", "backup") != "nightly-backup" || LabelValue("nightly") != "nightly" {
		t.Error("a short name is changed")
	}
}

func TestHashKnowsAnOtherOrder(t *testing.T) {
	t.Parallel()
	same := Hash(aRestore(func(o *RestoreOrder) {
		o.Image = "registry.example/mysql-operator:2"
		o.ServerResources = v1.Resources{}
	}))
	if Hash(aRestore()) != same {
		t.Error("a new operator, or other resources of members, would end a restore that is in progress")
	}
	for name, change := range map[string]func(*RestoreOrder){
		"credentials": func(o *RestoreOrder) { o.Location.Secret = "other" },
		"key":         func(o *RestoreOrder) { o.Location.EncryptionSecret = "other" },
	} {
		if Hash(aRestore(change)) == Hash(aRestore()) {
			t.Errorf("another %s makes no different hash", name)
		}
	}
	question, image := aQuestion(), aQuestion()
	if image.ServerImage = "mysql:9.8"; Hash(question) == Hash(image) {
		t.Error("another image does not change the hash")
	}
	job := as[batchv1.Job](t, RestoreJob(aRestore()))
	if job.Annotations[AnnotationOrder] != Hash(aRestore()) {
		t.Errorf("the Job does not carry it: %v", job.Annotations)
	}
}

func TestSlimObjectsKeepWhatIsRead(t *testing.T) {
	t.Parallel()
	job := jobs(t)["restore"]
	job.Status = batchv1.JobStatus{Failed: 2, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "too often"}}}
	pod := podOf("db-restore-x", failedWith(protocol.ReasonBackupCorrupt, protocol.ExitRefused))
	pod.Annotations = map[string]string{"cni": "much"}
	slimJob, slimPod := slim[batchv1.Job](t, SlimJob, job), slim[corev1.Pod](t, reconcile.KeepPod, pod)
	before, after := Observe(protocol.CommandBackup, &job, []corev1.Pod{pod}), Observe(protocol.CommandBackup, &slimJob, []corev1.Pod{slimPod})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the reduced Job has another state (-before +after):\n%s", diff)
	}
	if len(slimJob.Spec.Template.Spec.Containers) > 0 || len(slimPod.Annotations) > 0 {
		t.Error("most of the Job is kept")
	}
	if slimJob.Annotations[AnnotationOrder] == "" {
		t.Error("the Job no longer has the hash of its order")
	}
}

func slim[T any](t *testing.T, transform func(any) (any, error), object T) T {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	trimmed, err := transform(unstructuredOf(t, content))
	if err != nil {
		t.Fatal(err)
	}
	return as[T](t, trimmed)
}
