package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/children"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/cluster/restore"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/schema"
	v1 "github.com/mysql-operator/mysql-operator/schema/mysql/v1"
)

// Explanation is what the operator knows about a cluster that decides who takes over from its primary, and what it makes of that.
type Explanation struct {
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Time      metav1.Time        `json:"time"`
	Record    replication.Record `json:"record"`
	Limits    Limits             `json:"limits"`
	// Idle is why the operator changes nothing, whatever it finds; empty if that is not so.
	Idle    string                 `json:"idle,omitempty"`
	Members []replication.Evidence `json:"members"`
	// Verdicts are what each rule that replaces a failed primary finds.
	Verdicts  []replication.Verdict `json:"verdicts,omitempty"`
	Next      Next                  `json:"next"`
	Takeover  replication.Takeover  `json:"takeover"`
	Readiness Readiness             `json:"readiness"`
	// Takeovers and Conditions are those of the status: they show since when the operator reports something.
	Takeovers  []v1.Takeover      `json:"takeovers,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Unknown is what only the operator that makes the passes knows.
	Unknown []string `json:"unknown,omitempty"`
}

// Limits are those of the spec, with their defaults.
type Limits struct {
	NotReadySeconds    int `json:"notReadySeconds"`
	UnreachableSeconds int `json:"unreachableSeconds"`
	// IsReplacedUnreachable means whenPrimaryUnreachable: Replace.
	IsReplacedUnreachable bool `json:"isReplacedUnreachable"`
	// RestartsCrashed means whenPrimaryCrashes: Restart.
	RestartsCrashed bool `json:"restartsCrashed"`
	// ContinuesWithoutReplicas means whenReplicasLost: Continue, after GracePeriodSeconds.
	ContinuesWithoutReplicas bool `json:"continuesWithoutReplicas"`
	GracePeriodSeconds       int  `json:"gracePeriodSeconds"`
}

// Next is what the operator does next with the record if everything stays as it was observed.
type Next struct {
	// Changes reports whether it changes the record, and What how. It does so after so many seconds at the latest.
	Changes bool   `json:"changes"`
	What    string `json:"what,omitempty"`
	Seconds int    `json:"seconds,omitempty"`
	// Reason and Message are what users read then; empty for nothing. Command is what a user may do.
	Reason  replication.Reason `json:"reason,omitempty"`
	Message string             `json:"message,omitempty"`
	Command string             `json:"command,omitempty"`
	// Force is what a user may do if the data of other members is lost for good.
	Force string `json:"force,omitempty"`
}

// Readiness is the condition FailoverReady as it would be now.
type Readiness struct {
	IsReady bool               `json:"isReady"`
	Reason  replication.Reason `json:"reason"`
	Message string             `json:"message"`
}

// Explainer explains clusters. It can only read: it has neither a client that writes nor one that assigns.
type Explainer struct {
	Reader reader
	// Home is the operator's own namespace, which has the Secrets with the CAs of clusters.
	Home string
	Now  func() time.Time
}

// Explain observes a cluster as a pass does, and returns what the decisions of a pass make of it.
func (e Explainer) Explain(ctx context.Context, kind schema.Kind, key types.NamespacedName) (Explanation, error) {
	read := func() (*unstructured.Unstructured, v1.MySQLCluster, error) {
		var cluster v1.MySQLCluster
		object, err := e.Reader.Get(ctx, kind.GVR(), key.Namespace, key.Name)
		if err == nil {
			err = schema.Decode(object, &cluster)
		}
		return object, cluster, err
	}
	observe := func(object *unstructured.Unstructured, cluster v1.MySQLCluster) (observed, error) {
		return e.observe(ctx, object, cluster)
	}
	cluster, seen, err := observeUnchanged(read, observe)
	if err != nil {
		return Explanation{}, err
	}
	return explanationOf(cluster, seen), nil
}

// mostTries is how often a cluster is observed whose record changes meanwhile.
const mostTries = 3

// observeUnchanged observes a cluster, and again if its record has changed meanwhile: members would seem to hold a later one.
func observeUnchanged(read func() (*unstructured.Unstructured, v1.MySQLCluster, error), observe func(*unstructured.Unstructured, v1.MySQLCluster) (observed, error)) (v1.MySQLCluster, observed, error) {
	object, cluster, err := read()
	for try := 1; err == nil; try++ {
		var seen observed
		if seen, err = observe(object, cluster); err != nil {
			break
		}
		before := cluster
		object, cluster, err = read()
		if err == nil && (try == mostTries || recordOf(cluster.Status).Equal(recordOf(before.Status))) {
			return before, seen, nil
		}
	}
	return v1.MySQLCluster{}, observed{}, err
}

// observe reads the children from the API server, and asks the agents.
func (e Explainer) observe(ctx context.Context, object *unstructured.Unstructured, cluster v1.MySQLCluster) (observed, error) {
	n, seen := children.NamesOf(cluster), observed{now: e.Now()}
	var err error
	if seen.set, err = liveSet(ctx, e.Reader, object, n); err != nil {
		return seen, err
	}
	pods, err := e.Reader.List(ctx, children.Pods(), n.Namespace, n.Selector())
	if err != nil {
		return seen, err
	}
	volumes, err := e.Reader.List(ctx, children.Claims(), n.Namespace, n.Selector())
	if err != nil {
		return seen, err
	}
	pods = slices.DeleteFunc(pods, func(pod *unstructured.Unstructured) bool {
		return seen.set == nil || !metav1.IsControlledBy(pod, seen.set)
	})
	if err := seen.take(n, pods, volumes); err != nil {
		return seen, err
	}
	seen.members = membersOf(n, cluster, seen)
	return seen, e.ask(ctx, n, cluster, seen)
}

// ask asks the agents, the primary first.
func (e Explainer) ask(ctx context.Context, n children.Names, cluster v1.MySQLCluster, seen observed) error {
	held, _, err := home{e.Reader, e.Home}.readAuthorities(ctx, n, cluster.UID)
	if err != nil {
		return err
	}
	if len(held) == 0 {
		return fmt.Errorf("find the CA of %s: there is no usable Secret %s/%s: name the operator's namespace with --namespace", n.Key(), e.Home, n.AuthoritySecret())
	}
	security, err := agent.NewOperatorTLS(held, "", e.Now())
	if err != nil {
		return err
	}
	agents := agent.NewBystander(security.Client, agentTimeout)
	defer agents.Close()
	limit := func(string) time.Duration { return agentTimeout }
	all := targets{agents: agents, primary: cluster.Status.Primary, addresses: seen.addresses(), limit: limit}
	all.askPrimary(ctx, seen.members)
	all.askOthers(ctx, seen.members)
	return nil
}

func explanationOf(cluster v1.MySQLCluster, seen observed) Explanation {
	now := view(cluster, seen)
	found := Explanation{
		Namespace: cluster.Namespace, Name: cluster.Name, Time: metav1.NewTime(seen.now), Record: now.Record, Idle: idleBecause(cluster),
		Limits: Limits{
			NotReadySeconds: int(now.Limits.NotReady.Seconds()), UnreachableSeconds: int(now.Limits.Unreachable.Seconds()), IsReplacedUnreachable: now.WantsLease,
			RestartsCrashed:          now.Limits.RestartsCrashed,
			ContinuesWithoutReplicas: now.Durability.Continue, GracePeriodSeconds: int(now.Durability.Grace.Seconds()),
		},
		Members: now.Evidence(), Verdicts: now.Verdicts(), Next: nextOf(cluster, now), Takeover: now.Takeover(),
		Takeovers: cluster.Status.Takeovers, Conditions: cluster.Status.Conditions, Unknown: unknownOf(now),
	}
	found.Readiness.IsReady, found.Readiness.Reason, found.Readiness.Message = now.Failover()
	return found
}

// idleBecause is why the operator makes no decision about the members; empty if it makes them.
func idleBecause(cluster v1.MySQLCluster) string {
	switch {
	case cluster.DeletionTimestamp != nil:
		return "the resource is being deleted: the operator does nothing more for it"
	case cluster.Spec.Paused:
		return "the cluster is paused: the operator replaces no primary"
	case restore.IsWanted(cluster):
		return "the cluster starts from a backup: the operator appoints no primary before the restore is complete"
	}
	return ""
}

func nextOf(cluster v1.MySQLCluster, now replication.Cluster) Next {
	ahead := now.Outlook(func(then replication.Cluster) replication.Decision { return decide(cluster, then) })
	next := Next{Changes: ahead.Changes, Seconds: int(ahead.After.Seconds())}
	if ahead.Changes {
		next.What = recordReason(now.Record, ahead.Record)
	}
	if note := ahead.Note; note != nil {
		next.Reason, next.Message = note.Reason, note.Message
		if note.Refusal != "" {
			next.Message += "; " + note.Refusal
		}
		if note.Request != "" {
			next.Command = annotateCommand(children.NamesOf(cluster), AnnotationReplacePrimary, note.Request)
		}
		if note.Force != "" {
			next.Force = annotateCommand(children.NamesOf(cluster), AnnotationForcePrimary, note.Force)
		}
	}
	return next
}

// unknownOf lists what only the operator that makes the passes knows, and counts.
func unknownOf(now replication.Cluster) []string {
	var unknown []string
	for _, member := range now.Members {
		switch {
		case member.Status == nil:
			unknown = append(unknown, "for how long "+member.Name+" has not answered the operator")
		case now.Record.FormerPrimary == "":
		case member.Status.IsSilent(now.Record):
			unknown = append(unknown, "for how long "+member.Name+" has been seen not to acknowledge")
		default:
			unknown = append(unknown, "for how long "+member.Name+" has answered without having stopped to acknowledge")
		}
	}
	return unknown
}
