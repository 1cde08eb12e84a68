package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema"
	"github.com/mysql-operator/mysql-operator/schema/mysql/settings"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// No member restarts for settings that its mysqld would not accept, or for an image that does not work. The operator applies at once what
// the table of settings knows to be valid. About everything else it asks the image first, in a separate Pod (transfer.VersionJob). Until
// the image has answered, the StatefulSet stays as it is.

// settingsCheck is what is known about settings or an image that the members do not have yet.
type settingsCheck struct {
	// judged is what the table says about the settings. other reports whether the members have another image, or are missing a plugin: no
	// table knows about these.
	judged settings.Judgement
	other  bool
	// order is what to ask. job is the Job that asks, nil if there is none; jobObject is the same as it was read.
	order     transfer.VersionOrder
	job       *batchv1.Job
	jobObject *unstructured.Unstructured
	// answer is nil if there is none. state is the Job's state, refused why Kubernetes creates no Pod for it.
	answer  *agent.Answer
	state   transfer.State
	refused string
	// known is how long this process has known the Job, ended that it has ended, pending that its Pod has not begun.
	known, ended, pending time.Duration
}

// settingsAct is what to do about a question.
type settingsAct int

const (
	// settingsApply: the members may have the settings and the image.
	settingsApply settingsAct = iota
	settingsWait
	settingsAsk
	settingsDrop
)

// decideSettings decides what to do about settings or an image that the members do not have yet, and what to report meanwhile.
func decideSettings(cluster v1.MySQLCluster, q settingsCheck) (settingsAct, *report.Problem) {
	image := cluster.Spec.Image
	asks := report.Problem{Reason: reasonMembersNotReady, Message: fmt.Sprintf("asking image %q whether its mysqld accepts the settings, before any member restarts", image)}
	switch {
	case len(q.judged.Faults) > 0:
		return settingsWait, notTaken("spec.config: " + strings.Join(q.judged.Faults, "; "))
	case !q.needsAnswer():
		return settingsApply, nil
	case q.job == nil:
		return settingsAsk, &asks
	case q.job.DeletionTimestamp != nil:
		return settingsWait, &asks
	case q.job.Annotations[transfer.AnnotationOrder] != transfer.Hash(q.order):
		return settingsDrop, &asks
	case q.answer != nil:
		return decideAnswer(cluster, *q.answer)
	}
	return decideUnanswered(image, q, asks)
}

// decideUnanswered decides what to do while an image that was asked has given no answer, or will give none.
func decideUnanswered(image string, q settingsCheck, asks report.Problem) (settingsAct, *report.Problem) {
	switch ended := q.state.Phase == transfer.Succeeded || q.state.Phase == transfer.Failed; {
	case ended && q.ended >= transfer.AskAgain:
		return settingsDrop, &asks
	case ended:
		return settingsWait, &report.Problem{Reason: reasonImageUnusable, Message: fmt.Sprintf("spec.image: image %q did not report whether its mysqld accepts the settings; it must have mysqld on its PATH; kubectl logs job/%s shows more. Change spec.image; the operator asks the same image again within minutes", image, q.job.Name), Stalled: true}
	case q.pending >= transfer.AskAgain:
		// The cause may be fixed by now: imagePullSecrets, for example, reach only Pods that are created after them.
		return settingsDrop, &asks
	case q.refused != "":
		return settingsWait, &report.Problem{Reason: protocol.ReasonPodsNotCreated, Message: fmt.Sprintf("Kubernetes does not create the Pod of Job %s, which asks image %q whether its mysqld accepts the settings: %s; fix that, and Kubernetes tries again within minutes", q.job.Name, image, q.refused), Stalled: true}
	case q.state.Reason == protocol.ReasonImagePullFailed:
		return settingsWait, &report.Problem{Reason: reasonImagePull, Message: fmt.Sprintf("spec.image %s cannot be pulled: %s; check its name and that the node may pull it. The members keep the image that they have", image, q.state.Message), Stalled: true}
	case q.state.Message != "":
		asks.Message += ": " + q.state.Message
	}
	return settingsWait, &asks
}

// decideAnswer decides what follows from an image's answer.
func decideAnswer(cluster v1.MySQLCluster, answer agent.Answer) (settingsAct, *report.Problem) {
	image := cluster.Spec.Image
	switch {
	case replication.IsOlderSeries(answer.Version, cluster.Status.Version):
		return settingsWait, &report.Problem{Reason: reasonDowngrade, Message: fmt.Sprintf("spec.image: image %q has MySQL %s, which cannot open the data of MySQL %s: set spec.image back to that release; nothing was changed", image, answer.Version, cluster.Status.Version), Stalled: true}
	case answer.Accepted:
		return settingsApply, nil
	case len(answer.Refused) == 0:
		return settingsWait, notTaken(fmt.Sprintf("mysqld of image %q does not accept the settings of spec.config", image))
	}
	return settingsWait, notTaken(fmt.Sprintf("mysqld of image %q does not accept %s", image, strings.Join(answer.Refused, ", ")))
}

func notTaken(why string) *report.Problem {
	return &report.Problem{Reason: reasonSettings, Message: why + "; correct spec.config or spec.plugins; until then no member restarts", Stalled: true}
}

// settingsProblem returns why the members do not get the StatefulSet that they should have; nil if nothing prevents it.
func (r *reconciler) settingsProblem(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed, spec children.StatefulSetInput) (*report.Problem, error) {
	key, of := keyOf(cluster), childInputs{uid: cluster.UID, digest: digest(seen.versions, fmt.Sprint(cluster.Generation))}
	if known := r.memory.heldSettings(key, of, r.now()); known != nil {
		return known, nil
	}
	asked, err := r.questionOf(ctx, client, cluster, seen, spec)
	if asked == nil || err != nil {
		return nil, err
	}
	act, found := decideSettings(cluster, *asked)
	switch act {
	case settingsAsk:
		_, err = client.Create(ctx, transfer.VersionJob(asked.order))
		err = transfer.IgnoreExists(err)
	case settingsDrop:
		err = client.Delete(ctx, transfer.Jobs(), asked.jobObject)
	case settingsApply, settingsWait:
	}
	if refused := report.FromError(err); refused != nil {
		found, err = refused, nil
	}
	if err == nil && found != nil && act == settingsWait {
		r.memory.holdSettings(key, heldBackResult{of, *found, r.now().Add(asked.again())})
	}
	return found, err
}

// questionOf checks whether the members should get other settings, or another image; nil if they should not.
func (r *reconciler) questionOf(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, seen observed, spec children.StatefulSetInput) (*settingsCheck, error) {
	n := children.NamesOf(cluster)
	var live *appsv1.StatefulSet
	if seen.set != nil {
		same, err := client.IsApplied(ctx, children.StatefulSet(n, cluster, spec))
		if same || err != nil {
			return nil, err
		}
		if live, err = liveSet(ctx, r.reader, client.Owner(), n); err != nil {
			return nil, err
		}
	}
	table, err := settings.Read()
	if err != nil {
		return nil, err
	}
	if live == nil {
		// There are no members yet that could be harmed: each checks the settings with its own mysqld when it starts.
		return &settingsCheck{judged: settings.Judgement{Faults: table.Judge(cluster.Spec.Config, "").Faults}}, nil
	}
	asked := newQuestion(cluster, *live, table)
	if asked.needsAnswer() {
		asked.order = transfer.NewVersionOrder(cluster, r.operator.Image)
		asked.order.Settings = withoutMemory(children.RenderConfig(cluster))
		err = r.observeQuestion(ctx, client, cluster, &asked)
	}
	return &asked, err
}

// newQuestion judges what the members would get that they do not have.
func newQuestion(cluster v1.MySQLCluster, set appsv1.StatefulSet, table settings.Table) settingsCheck {
	if children.ImageOf(set) != cluster.Spec.Image {
		return settingsCheck{other: true}
	}
	has, missing := linesIn(set), map[string]string{}
	for name, value := range cluster.Spec.Config {
		if !has[children.ConfigLine(strings.ReplaceAll(name, "-", "_"), value)] {
			missing[name] = value
		}
	}
	asked := settingsCheck{judged: table.Judge(missing, commonVersion(cluster.Status))}
	lacks := func(library string) bool { return !has[children.ConfigLine(children.SettingPlugin, library)] }
	asked.other = slices.ContainsFunc(cluster.Spec.Plugins, lacks)
	asked.loses(has, children.RenderConfig(cluster), table)
	return asked
}

// loses records what members would no longer have. Without a plugin, its settings are unknown. And the default of one setting may not fit
// the value of another, as a collation and a character set. An independent setting, such as a number, may go.
func (q *settingsCheck) loses(has map[string]bool, wanted string, table settings.Table) {
	stays := map[string]bool{}
	for one := range strings.Lines(wanted) {
		stays[one] = true
	}
	for one := range has {
		spelled, _, isSetting := strings.Cut(one, " = ")
		if stays[one] || !isSetting {
			continue
		}
		name := settings.Plain(spelled)
		switch known := table[name]; {
		case name == children.SettingPlugin:
			q.other = true
		case known.Name == "" || known.Type == settings.Text || known.Type == settings.Set:
			q.judged.Unsure = append(q.judged.Unsure, name)
		}
	}
}

// withoutMemory leaves out the settings for which mysqld takes memory even if it only checks them, or which it compares with the memory
// that it has: the Pod that is asked has little (seen on 9.7.4). They are numbers, which the table judges.
func withoutMemory(text string) string {
	var kept strings.Builder
	for one := range strings.Lines(text) {
		spelled, _, _ := strings.Cut(one, " = ")
		if name := settings.Plain(spelled); name != "key_buffer_size" && name != "server_memory" {
			kept.WriteString(one)
		}
	}
	return kept.String()
}

// commonVersion returns the MySQL release that all members had when they were last seen; empty if they differ, as in the middle of an
// upgrade.
func commonVersion(status v1.MySQLClusterStatus) string {
	for _, member := range status.Members {
		if member.Version != "" && member.Version != status.Version {
			return ""
		}
	}
	return status.Version
}

// again returns how long a result holds if no child changes: a final one holds until the image itself may be another. No watch reports a
// Job's state, so the longer the Job takes, the less often the operator looks.
func (q settingsCheck) again() time.Duration {
	if len(q.judged.Faults) > 0 || q.answer != nil {
		return transfer.AskAgain
	}
	return min(max(stepEvery, q.known/8), unwatchedLimit)
}

// needsAnswer reports whether only the image itself can answer.
func (q settingsCheck) needsAnswer() bool {
	return len(q.judged.Faults) == 0 && (q.other || len(q.judged.Unsure) > 0)
}

// observeQuestion reads the Job that asks, and its answer.
func (r *reconciler) observeQuestion(ctx context.Context, client *reconcile.Client, cluster v1.MySQLCluster, asked *settingsCheck) error {
	n := children.NamesOf(cluster)
	jobs := transfer.ClusterJobs{Reader: r.reader, Namespace: n.Namespace, Cluster: n.Cluster}
	job, err := jobs.Get(ctx, client, transfer.VersionJobName(asked.order))
	if err != nil || job == nil {
		return err
	}
	asked.job, asked.jobObject = &batchv1.Job{}, job
	if err := schema.Decode(job, asked.job); err != nil {
		return err
	}
	all, err := jobs.Pods(ctx)
	if err != nil {
		return err
	}
	own := transfer.PodsOf(asked.job, all)
	asked.answer, asked.state = transfer.ObserveSettings(asked.job, own, cluster.Spec)
	asked.known = r.memory.failures.Waited(n.NamespacedName(), "known "+string(asked.job.UID), r.now())
	if asked.state.Phase == transfer.Failed || asked.state.Phase == transfer.Succeeded {
		asked.ended = r.memory.failures.Waited(n.NamespacedName(), "ended "+string(asked.job.UID), r.now())
	}
	if asked.state.Phase == transfer.Pending {
		asked.pending = r.memory.failures.Waited(n.NamespacedName(), "pending "+string(asked.job.UID), r.now())
	}
	if len(own) == 0 && asked.state.Phase == transfer.Pending {
		asked.refused, err = jobs.Refusal(ctx, job)
	}
	return err
}

// linesIn returns the settings of a StatefulSet's members, line by line.
func linesIn(set appsv1.StatefulSet) map[string]bool {
	has := map[string]bool{}
	for _, container := range set.Spec.Template.Spec.InitContainers {
		for _, variable := range container.Env {
			if container.Name != children.ContainerPrepare || variable.Name != agent.EnvSettings {
				continue
			}
			for one := range strings.Lines(strings.ReplaceAll(variable.Value, "$$", "$")) {
				has[one] = true
			}
		}
	}
	return has
}
