package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/utils/strings"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/migration"
	"github.com/mysql-operator/mysql-operator/deploy"
)

const (
	// eventPatience limits the writing of an event; nothing depends on it.
	eventPatience = 5 * time.Second
	maxEventNote  = 1024 // API reference, Event v1 events.k8s.io
)

// definitionReporter informs users of what happens to definitions: in the log, in metrics, and as events about them.
type definitionReporter struct {
	log      logr.Logger
	events   eventsclient.EventsV1Interface
	instance string

	versions, states *prometheus.GaugeVec
	lost, healed     *prometheus.CounterVec
	rewritten        *prometheus.GaugeVec
}

func (o operator) newDefinitionNews(defined []crds.Definition) (*definitionReporter, error) {
	events, err := eventsclient.NewForConfig(o.cluster.rest)
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name for this process: %w", err)
	}
	const prefix, label = "mysql_operator_definition_", "definition"
	n := &definitionReporter{
		log: o.log.WithName("crds"), events: events, instance: instance,
		versions:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "schema_version", Help: "Schema version of a definition: in the cluster, and in this operator."}, []string{label, "where"}),
		states:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "state", Help: "1 for the last decision about a definition, by action and reason."}, []string{label, "action", "reason"}),
		lost:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "deletions_total", Help: "Definitions deleted while the operator ran, with all their objects."}, []string{label}),
		healed:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "heals_total", Help: "Repairs of definitions that were changed while the operator ran."}, []string{label}),
		rewritten: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "migration_objects", Help: "Objects of the current or last migration, by state; for total, 0 means unknown."}, []string{label, "state"}),
	}
	var faults []error
	for _, collector := range []prometheus.Collector{n.versions, n.states, n.lost, n.healed, n.rewritten} {
		faults = append(faults, o.registry.Register(collector))
	}
	for _, definition := range defined {
		n.versions.WithLabelValues(definition.Name(), "operator").Set(float64(definition.Version))
		n.lost.WithLabelValues(definition.Name())
		n.healed.WithLabelValues(definition.Name())
	}
	return n, errors.Join(faults...)
}

// installed reports what the operator did with a definition at boot.
func (n *definitionReporter) installed(ctx context.Context, result crds.Result) {
	name := result.Definition.Name()
	for _, step := range result.Plan.Steps {
		n.log.Info("definition in force", "name", name, "op", step.Action, "reason", step.Reason, "message", step.Message, "duration", result.Elapsed)
	}
	n.changed(result)
	n.measure(result.Definition, result.Existing, result.Plan.Decision().Action, result.Plan.Decision().Reason)
	decision := result.Plan.Decision()
	// If the definition in the cluster is newer, this start may be a rollback. Then the event warns the user early of what this operator
	// does not have.
	goneBack := decision.Reason == crds.ReasonNewerConverts
	if decision.Action == crds.Update || goneBack {
		n.event(ctx, crds.Notice{Definition: result.Definition, Regarding: result.Existing, Warning: goneBack, Reason: decision.Reason, Message: decision.Message})
	}
}

// changed logs what an update changed in a definition.
func (n *definitionReporter) changed(result crds.Result) {
	if result.Existing == nil || result.Plan.Target == nil {
		return
	}
	lines, err := crds.Diff(result.Existing, result.Plan.Target)
	if err != nil {
		n.log.Error(err, "failed to compare a definition with its update", "name", result.Definition.Name())
	}
	for _, line := range lines {
		n.log.Info("definition changed", "name", result.Definition.Name(), "change", line)
	}
}

// tell reports what happened to a definition after the boot.
func (n *definitionReporter) tell(ctx context.Context, notice crds.Notice) {
	name := notice.Definition.Name()
	switch {
	case notice.Reason == crds.ReasonDefinitionDeleted:
		n.lost.WithLabelValues(name).Inc()
		n.log.Error(nil, notice.Message, "name", name, "reason", notice.Reason)
	case notice.Warning:
		n.log.Error(nil, "definition needs attention", "name", name, "reason", notice.Reason, "message", notice.Message)
	default:
		n.log.Info("definition checked", "name", name, "reason", notice.Reason, "message", notice.Message)
	}
	if notice.Reason == crds.ReasonHealed {
		n.healed.WithLabelValues(name).Inc()
	}
	n.measure(notice.Definition, notice.Regarding, actionOf(notice), notice.Reason)
	if notice.Warning || notice.Reason == crds.ReasonHealed {
		n.event(ctx, notice)
	}
}

// migrated records the progress of a migration.
func (n *definitionReporter) migrated(progress migration.Progress) {
	for state, count := range map[string]int{"done": progress.Done, "skipped": progress.Skipped, "refused": progress.Refused, "total": progress.Total} {
		n.rewritten.WithLabelValues(progress.Definition, state).Set(float64(count))
	}
}

func actionOf(notice crds.Notice) crds.Action {
	if notice.Warning {
		return crds.Refuse
	}
	return crds.Keep
}

func (n *definitionReporter) measure(definition crds.Definition, existing *apiextensionsv1.CustomResourceDefinition, action crds.Action, reason crds.Reason) {
	name := definition.Name()
	n.states.DeletePartialMatch(prometheus.Labels{"definition": name})
	n.states.WithLabelValues(name, string(action), string(reason)).Set(1)
	if existing == nil {
		return
	}
	if order, err := strconv.Atoi(existing.Annotations[definition.Identity().VersionAnnotation()]); err == nil {
		n.versions.WithLabelValues(name, "cluster").Set(float64(order))
	}
}

// event writes an event about the definition, if the operator may. An operator with only Roles has no permission in the namespace of such
// events.
func (n *definitionReporter) event(ctx context.Context, notice crds.Notice) {
	if notice.Regarding == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if notice.Warning {
		kind = corev1.EventTypeWarning
	}
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	// Events about objects without a namespace belong to the namespace default.
	_, err := n.events.Events(metav1.NamespaceDefault).Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: strings.ShortenString(notice.Regarding.Name, 200) + "-"},
		EventTime:  metav1.NowMicro(), ReportingController: deploy.Name, ReportingInstance: n.instance, Action: "Reconcile",
		Type: kind, Reason: string(notice.Reason), Note: strings.ShortenString(notice.Message, maxEventNote),
		Regarding: corev1.ObjectReference{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: notice.Regarding.Name, UID: notice.Regarding.UID,
			ResourceVersion: notice.Regarding.ResourceVersion,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		n.log.Info("failed to write event", "name", notice.Regarding.Name, "reason", notice.Reason, "error", err.Error())
	}
}
