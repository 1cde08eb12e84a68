package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/transfer/protocol"
	"github.com/mysql-operator/mysql-operator/reconcile/report"
	"github.com/mysql-operator/mysql-operator/schema/mysql/settings"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

func TestNoMemberRestartsForWhatItsMysqldWouldNotTake(t *testing.T) {
	t.Parallel()
	cluster := v1.MySQLCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	cluster.Spec.Image, cluster.Status.Version = "mysql:new", "9.7.4"
	order := transfer.VersionOrder{Namespace: "shop", Cluster: "db", ServerImage: "mysql:new", Settings: "x"}
	job := func(changes ...func(*batchv1.Job)) *batchv1.Job {
		made := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-settings", Annotations: map[string]string{transfer.AnnotationOrder: transfer.Hash(order)}}}
		for _, change := range changes {
			change(made)
		}
		return made
	}
	unsure := settings.Judgement{Unsure: []string{"no_such_setting"}}
	failed := transfer.State{Phase: transfer.Failed}
	for name, test := range map[string]struct {
		q       settingsCheck
		act     settingsAct
		reason  string
		stalled bool
		says    string
	}{
		"the table vouches for all":               {q: settingsCheck{}, act: settingsApply},
		"the table knows better":                  {q: settingsCheck{judged: settings.Judgement{Faults: []string{"max_connections must be a whole number", "b is none"}}}, act: settingsWait, reason: reasonSettings, stalled: true, says: "spec.config: max_connections must be a whole number; b is none"},
		"a name that the table does not have":     {q: settingsCheck{judged: unsure}, act: settingsAsk, reason: reasonMembersNotReady, says: `asking image "mysql:new"`},
		"another image":                           {q: settingsCheck{other: true}, act: settingsAsk, reason: reasonMembersNotReady},
		"the answer is awaited":                   {q: settingsCheck{judged: unsure, job: job(), state: transfer.State{Phase: transfer.Running}}, act: settingsWait, reason: reasonMembersNotReady},
		"the Job that asked goes":                 {q: settingsCheck{judged: unsure, job: job(func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} })}, act: settingsWait, reason: reasonMembersNotReady},
		"other settings were asked about":         {q: settingsCheck{judged: unsure, job: job(func(j *batchv1.Job) { j.Annotations[transfer.AnnotationOrder] = "other" })}, act: settingsDrop, reason: reasonMembersNotReady},
		"it takes them":                           {q: settingsCheck{judged: unsure, job: job(), answer: &agent.Answer{Version: "9.7.4", Accepted: true}}, act: settingsApply},
		"it does not":                             {q: settingsCheck{judged: unsure, job: job(), answer: &agent.Answer{Version: "9.7.4", Refused: []string{"no_such_setting"}}}, act: settingsWait, reason: reasonSettings, stalled: true, says: "does not accept no_such_setting;"},
		"it does not, and does not say why":       {q: settingsCheck{judged: unsure, job: job(), answer: &agent.Answer{Version: "9.7.4"}}, act: settingsWait, reason: reasonSettings, stalled: true, says: "does not accept the settings of spec.config"},
		"a newer image":                           {q: settingsCheck{other: true, job: job(), answer: &agent.Answer{Version: "26.7.0", Accepted: true}}, act: settingsApply},
		"an earlier patch of the series":          {q: settingsCheck{other: true, job: job(), answer: &agent.Answer{Version: "9.7.3", Accepted: true}}, act: settingsApply},
		"an image of an older series":             {q: settingsCheck{other: true, job: job(), answer: &agent.Answer{Version: "8.4.6", Accepted: true}}, act: settingsWait, reason: reasonDowngrade, stalled: true, says: "cannot open the data of MySQL 9.7.4"},
		"an image that says nothing":              {q: settingsCheck{other: true, job: job(), state: failed}, act: settingsWait, reason: reasonImageUnusable, stalled: true, says: "kubectl logs job/db-settings"},
		"it is asked again after a while":         {q: settingsCheck{other: true, job: job(), state: failed, ended: transfer.AskAgain}, act: settingsDrop, reason: reasonMembersNotReady},
		"an image that cannot be pulled":          {q: settingsCheck{other: true, job: job(), state: transfer.State{Phase: transfer.Pending, Reason: protocol.ReasonImagePullFailed, Message: "not found"}}, act: settingsWait, reason: reasonImagePull, stalled: true, says: "keep the image that they have"},
		"its Pod has waited for long":             {q: settingsCheck{other: true, job: job(), pending: transfer.AskAgain, state: transfer.State{Phase: transfer.Pending, Reason: protocol.ReasonImagePullFailed}}, act: settingsDrop, reason: reasonMembersNotReady},
		"Kubernetes makes no Pod to ask":          {q: settingsCheck{other: true, job: job(), state: transfer.State{Phase: transfer.Pending}, refused: "exceeded quota"}, act: settingsWait, reason: protocol.ReasonPodsNotCreated, stalled: true, says: "exceeded quota"},
		"the table knows better than the image":   {q: settingsCheck{judged: settings.Judgement{Faults: []string{"x"}}, other: true, job: job(), answer: &agent.Answer{Version: "9.7.4", Accepted: true}}, act: settingsWait, reason: reasonSettings, stalled: true},
		"the Pod waits for a node to run on, say": {q: settingsCheck{other: true, job: job(), state: transfer.State{Phase: transfer.Pending, Message: "0/3 nodes"}}, act: settingsWait, reason: reasonMembersNotReady, says: "0/3 nodes"},
	} {
		test.q.order = order
		act, found := decideSettings(cluster, test.q)
		if found == nil {
			found = &report.Problem{}
		}
		if act != test.act || found.Reason != test.reason || found.Stalled != test.stalled || !strings.Contains(found.Message, test.says) {
			t.Errorf("%s: act %d, %+v", name, act, *found)
		}
	}
}

// TestWhatMembersWouldGet reads the StatefulSet that the operator itself applies.
func TestWhatMembersWouldGet(t *testing.T) {
	t.Parallel()
	table, err := settings.Read()
	if err != nil {
		t.Fatal(err)
	}
	cluster := v1.MySQLCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	cluster.Spec.Image, cluster.Spec.Secret, cluster.Spec.Port, cluster.Status.Version = "mysql:9.7", "root", 3306, "9.7.4"
	cluster.Spec.Config = map[string]string{"sql-mode": "ANSI", "ft_boolean_syntax": "$x $$y", "sort_buffer_size": "1M"}
	cluster.Spec.Plugins = []string{"thread_pool.so"}
	set := as[appsv1.StatefulSet](t, children.StatefulSet(children.NamesOf(cluster), cluster, children.StatefulSetInput{AgentImage: "operator:1", Scale: 2}))
	for name, test := range map[string]struct {
		change      func(*v1.MySQLCluster)
		asks, wrong bool
	}{
		"the same": {change: func(*v1.MySQLCluster) {}},
		"another spelling": {change: func(c *v1.MySQLCluster) {
			delete(c.Spec.Config, "sql-mode")
			c.Spec.Config["sql_mode"] = "ANSI"
		}},
		"without a number":            {change: func(c *v1.MySQLCluster) { delete(c.Spec.Config, "sort_buffer_size") }},
		"without a text":              {change: func(c *v1.MySQLCluster) { delete(c.Spec.Config, "ft_boolean_syntax") }, asks: true},
		"a setting that is known":     {change: func(c *v1.MySQLCluster) { c.Spec.Config["max_connections"] = "5" }},
		"one that is not":             {change: func(c *v1.MySQLCluster) { c.Spec.Config["max_conections"] = "5" }, asks: true},
		"a value that is none":        {change: func(c *v1.MySQLCluster) { c.Spec.Config["max_connections"] = "five" }, wrong: true},
		"another value":               {change: func(c *v1.MySQLCluster) { c.Spec.Config["sql-mode"] = "ANSI_QUOTES" }, asks: true},
		"the beginning of a value":    {change: func(c *v1.MySQLCluster) { c.Spec.Config["sql-mode"] = "AN" }, asks: true},
		"another image":               {change: func(c *v1.MySQLCluster) { c.Spec.Image = "mysql:26.7" }, asks: true},
		"another plugin":              {change: func(c *v1.MySQLCluster) { c.Spec.Plugins = append(c.Spec.Plugins, "rewriter.so") }, asks: true},
		"no plugin":                   {change: func(c *v1.MySQLCluster) { c.Spec.Plugins = nil }, asks: true},
		"another number of replicas":  {change: func(c *v1.MySQLCluster) { c.Spec.Replicas = new(int32) }},
		"a setting of another series": {change: func(c *v1.MySQLCluster) { c.Spec.Config["expire_logs_days"] = "3" }, wrong: true},
		"the same in the middle of an upgrade": {change: func(c *v1.MySQLCluster) {
			c.Status.Members = []v1.Member{{Name: "db-0", Version: "9.7.4"}, {Name: "db-1", Version: "8.0.41"}}
			c.Spec.Config["expire_logs_days"] = "3"
		}, asks: true},
	} {
		wanted := cluster
		wanted.Spec.Config, wanted.Spec.Plugins = maps.Clone(cluster.Spec.Config), slices.Clone(cluster.Spec.Plugins)
		test.change(&wanted)
		asked := newQuestion(wanted, set, table)
		if asked.needsAnswer() != test.asks || (len(asked.judged.Faults) > 0) != test.wrong {
			t.Errorf("%s: %+v", name, asked)
		}
	}
}

// TestAnImageThatAWebhookWrote: no user asked for that image. The operator compares what it applied.
func TestAnImageThatAWebhookWrote(t *testing.T) {
	t.Parallel()
	cluster := v1.MySQLCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	cluster.Spec.Image = "mysql:9.7"
	set := as[appsv1.StatefulSet](t, children.StatefulSet(children.NamesOf(cluster), cluster, children.StatefulSetInput{AgentImage: "operator:1", Scale: 2}))
	for i := range set.Spec.Template.Spec.Containers {
		set.Spec.Template.Spec.Containers[i].Image = "mirror.example/" + set.Spec.Template.Spec.Containers[i].Image
	}
	if asked := newQuestion(cluster, set, nil); asked.needsAnswer() {
		t.Errorf("it asks %+v", asked)
	}
	if u := upgradeOf(rollout{}, cluster, observed{set: &set}); u.image != "" {
		t.Errorf("the update brings image %s", u.image)
	}
	set.Annotations = nil // as an operator of an earlier release left it
	if asked := newQuestion(cluster, set, nil); !asked.other {
		t.Error("it is unknown for which image it was applied, and the new one is not asked")
	}
}

// TestAQuestionThatTakesLongIsLookedAtSeldom: no watch reports the state of its Job.
func TestAQuestionThatTakesLongIsLookedAtSeldom(t *testing.T) {
	t.Parallel()
	for known, want := range map[time.Duration]time.Duration{0: time.Second, 8 * time.Second: time.Second, 80 * time.Second: 10 * time.Second, time.Hour: 30 * time.Second} {
		if got := (settingsCheck{other: true, known: known}).again(); got != want {
			t.Errorf("known for %s it is looked at again after %s, want %s", known, got, want)
		}
	}
	if got := (settingsCheck{answer: &agent.Answer{}}).again(); got != transfer.AskAgain {
		t.Errorf("an answer holds for %s", got)
	}
}

// TestOwnPluginsAreCounted: at its first start, a member distinguishes the user's plugins from the operator's by their number.
func TestOwnPluginsAreCounted(t *testing.T) {
	t.Parallel()
	if got := strings.Count(children.RenderConfig(v1.MySQLCluster{}), "\n"+children.SettingPlugin+" = "); got != agent.OwnPlugins {
		t.Errorf("every cluster loads %d plugins, and agent.OwnPlugins is %d", got, agent.OwnPlugins)
	}
}

func TestTheImageIsAskedWithoutWhatTakesMemory(t *testing.T) {
	t.Parallel()
	if got := withoutMemory("[mysqld]\nkey-buffer-size = 2G\nloose_server_memory = 4G\nsql_mode = ANSI\n"); got != "[mysqld]\nsql_mode = ANSI\n" {
		t.Errorf("it is asked about %q", got)
	}
}

func TestRefusedSettingsAreNotJudgedAtEveryLook(t *testing.T) {
	t.Parallel()
	m, key, of := newMemory(), keyOf(v1.MySQLCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}), childInputs{uid: "1", digest: 7}
	at := metav1.Now().Time
	m.holdSettings(key, heldBackResult{of, report.Problem{Reason: reasonSettings, Message: "x", Stalled: true}, at.Add(transfer.AskAgain)})
	if found := m.heldSettings(key, of, at); found == nil || found.Reason != reasonSettings {
		t.Errorf("found %+v", found)
	}
	for name, found := range map[string]*report.Problem{
		"later":           m.heldSettings(key, of, at.Add(transfer.AskAgain)),
		"after a change":  m.heldSettings(key, childInputs{uid: "1", digest: 8}, at),
		"of another life": m.heldSettings(key, childInputs{uid: "2", digest: 7}, at),
	} {
		if found != nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
	m.forget(key)
	if m.heldSettings(key, of, at) != nil {
		t.Error("it is remembered of a cluster that is gone")
	}
}
