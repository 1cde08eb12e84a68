package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/figure"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/bench/testbed"
)

const (
	mebibyte = 1 << 20
	// stormBase and stormPerCluster bound how long all clusters may take to get where they are going.
	stormBase       = 10 * time.Minute
	stormPerCluster = 600 * time.Millisecond
	// restartLimit bounds how long an operator may take to look at all.
	restartLimit = 15 * time.Minute
	// roundBeyondStorm bounds the rest of a round.
	roundBeyondStorm = 40 * time.Minute
	// provoked is how many passes are provoked to measure what one costs.
	provoked = 3000
)

// measured is what one round came to.
type measured struct {
	clusters int
	unready  bool
	// storm is how long it took from the first cluster until all were Ready, or had their StatefulSets where none can be; sets is the
	// latter in both cases.
	storm, sets time.Duration
	// told is how long each cluster was without conditions, in order.
	told      []time.Duration
	anonymous float64
	// cpu is in percent of one processor, requests, writes and passes in each second, all at rest.
	cpu, requests, writes, passes float64
	// p50 and p99 are how long the passes at rest took, in milliseconds.
	p50, p99 float64
	// cost is how much processor time one of the provoked passes took.
	cost time.Duration
	// restart is how long an operator took from its start until it had looked at all clusters; restartWrites is how often it wrote.
	restart       time.Duration
	restartWrites float64
	// What was written at rest and at the restart; empty where nothing was.
	wroteAtRest, wroteAtRestart string
}

func (m measured) name() string {
	if m.unready {
		return fmt.Sprintf("scale_%d_unready", m.clusters)
	}
	return fmt.Sprintf("scale_%d", m.clusters)
}

func (m measured) print(out io.Writer) {
	name := m.name()
	for when, wrote := range map[string]string{"at rest": m.wroteAtRest, "at the restart": m.wroteAtRestart} {
		if wrote != "" {
			fmt.Fprintf(out, "%s, written %s: %s\n", name, when, wrote)
		}
	}
	figure.Print(out, name+"_anon", m.anonymous/mebibyte, "MiB")
	fmt.Fprintf(out, "figure %s_cpu_rest %.2f percent\n", name, m.cpu)
	figure.Print(out, name+"_requests_rest", m.requests, "/s")
	figure.Print(out, name+"_writes_rest", m.writes, "/s")
	figure.Print(out, name+"_passes_rest", m.passes, "/s")
	figure.Print(out, name+"_storm", m.storm.Seconds(), "s")
	figure.Print(out, name+"_storm_sets", m.sets.Seconds(), "s")
	for _, percent := range []float64{50, 99} {
		fmt.Fprintf(out, "figure %s_first_conditions_p%.0f %.2f s\n", name, percent, figure.Percentile(figure.Seconds(m.told), percent))
	}
	figure.Print(out, name+"_restart", m.restart.Seconds(), "s")
	figure.Print(out, name+"_restart_writes", m.restartWrites, "count")
	fmt.Fprintf(out, "figure %s_pass_p50 %.2f ms\nfigure %s_pass_p99 %.2f ms\n", name, m.p50, name, m.p99)
	fmt.Fprintf(out, "figure %s_pass_cost %.3f ms\n", name, m.cost.Seconds()*1000)
}

// round measures one operator with so many clusters, on a control plane of its own. It says on out how long each part took.
func (b *builder) round(ctx context.Context, o options, out io.Writer, clusters int, unready bool) (m measured, err error) {
	limit := stormLimit(clusters) + roundBeyondStorm
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the round took longer than %s", limit))
	defer cancel()
	m = measured{clusters: clusters, unready: unready}
	var bed *testbed.Bed
	err = m.part(out, "control plane", func() error {
		bed, err = b.up(ctx, o)
		return err
	})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, bed.Down(context.WithoutCancel(ctx))) }()
	operator, err := bed.Start(ctx, "")
	if err != nil {
		return m, err
	}
	s, err := m.measure(ctx, o, out, bed, operator)
	if s != nil { // the stage continues to run while another operator is measured
		defer func() { err = errors.Join(err, s.end()) }()
	}
	if err := errors.Join(err, operator.Stop()); err != nil {
		return m, err
	}
	err = m.part(out, "restart", func() error { return m.measureRestart(ctx, bed) })
	return m, err
}

// stormLimit bounds the storm of so many clusters.
func stormLimit(clusters int) time.Duration {
	return stormBase + time.Duration(clusters)*stormPerCluster
}

// part does a part of a round, and says how long it took.
func (m *measured) part(out io.Writer, name string, do func() error) error {
	began := time.Now()
	err := do()
	fmt.Fprintf(out, "%s: %s took %s\n", m.name(), name, time.Since(began).Round(100*time.Millisecond))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// measure measures the first operator of a round.
func (m *measured) measure(ctx context.Context, o options, out io.Writer, bed *testbed.Bed, operator *testbed.Process) (*stage, error) {
	if err := operator.AwaitReady(ctx); err != nil {
		return nil, err
	}
	s, err := newStage(ctx, bed, !m.unready)
	if err != nil {
		return nil, err
	}
	if err := m.part(out, "storm", func() error { return m.measureStorm(ctx, o, s) }); err != nil {
		return s, fmt.Errorf("%w%s", err, operator.Tail())
	}
	if err := m.part(out, "rest", func() error { return m.measureRest(ctx, o, operator) }); err != nil {
		return s, err
	}
	return s, m.part(out, "provoked passes", func() error { return m.measureCost(ctx, s, operator) })
}

func (m *measured) measureStorm(ctx context.Context, o options, s *stage) error {
	limit := stormLimit(m.clusters)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not after %s", limit))
	defer cancel()
	began := time.Now()
	made := make(chan error, 1)
	go func() { made <- s.makeClusters(ctx, m.clusters, o.members) }()
	err := testbed.Until(ctx, fmt.Sprintf("%d StatefulSets", m.clusters), func() bool { return s.sets.Load() >= int64(m.clusters) })
	m.sets = time.Since(began)
	if err := errors.Join(<-made, err); err != nil {
		return errors.Join(err, s.failure())
	}
	err = testbed.Until(ctx, fmt.Sprintf("conditions of %d clusters", m.clusters), func() (all bool) {
		m.told, all = s.firstConditions()
		return all
	})
	if err != nil {
		return errors.Join(err, s.failure())
	}
	m.storm = m.sets
	if m.unready {
		return nil
	}
	err = testbed.Until(ctx, fmt.Sprintf("%d clusters to be Ready", m.clusters), func() bool { return s.readyClusters() >= m.clusters })
	m.storm = time.Since(began)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %d are", err, s.readyClusters()), s.failure())
	}
	return nil
}

// moment is what an operator had used and done by a moment.
type moment struct {
	at      time.Time
	cpu     time.Duration
	metrics map[string]float64
}

func momentOf(ctx context.Context, operator *testbed.Process) (moment, error) {
	used, err := machine.Proc.CPU(operator.PID())
	if err != nil {
		return moment{}, fmt.Errorf("%w%s", err, operator.Tail())
	}
	all, err := operator.Metrics(ctx)
	return moment{at: time.Now(), cpu: used, metrics: all}, err
}

// measureRest measures the operator while nothing happens.
func (m *measured) measureRest(ctx context.Context, o options, operator *testbed.Process) error {
	if err := testbed.Pause(ctx, o.settle); err != nil {
		return err
	}
	before, err := momentOf(ctx, operator)
	if err != nil {
		return err
	}
	if err := testbed.Pause(ctx, o.rest); err != nil {
		return err
	}
	after, err := momentOf(ctx, operator)
	if err != nil {
		return err
	}
	memory, err := machine.Proc.Memory(operator.PID())
	if err != nil {
		return err
	}
	seconds := after.at.Sub(before.at).Seconds()
	m.anonymous = float64(memory.Anonymous)
	m.cpu = (after.cpu - before.cpu).Seconds() / seconds * 100
	m.requests = (requests(after.metrics) - requests(before.metrics)) / seconds
	m.writes = (writes(after.metrics) - writes(before.metrics)) / seconds
	m.wroteAtRest = written(before.metrics, after.metrics)
	m.passes = (passes(after.metrics) - passes(before.metrics)) / seconds
	m.p50 = quantile(0.50, durations(before.metrics), durations(after.metrics)) * 1000
	m.p99 = quantile(0.99, durations(before.metrics), durations(after.metrics)) * 1000
	return nil
}

// measureCost provokes passes by changes that mean nothing, and measures what one of them costs.
func (m *measured) measureCost(ctx context.Context, s *stage, operator *testbed.Process) error {
	before, err := momentOf(ctx, operator)
	if err != nil {
		return err
	}
	if err := s.touch(ctx, m.clusters, provoked); err != nil {
		return err
	}
	after, err := momentOf(ctx, operator)
	if err != nil {
		return err
	}
	made := passes(after.metrics) - passes(before.metrics)
	if made < provoked/2 {
		return fmt.Errorf("provoke %d passes: only %.0f were made", provoked, made)
	}
	m.cost = time.Duration(float64(after.cpu-before.cpu) / made)
	return nil
}

// measureRestart starts another operator where everything is as it should be.
func (m *measured) measureRestart(ctx context.Context, bed *testbed.Bed) (err error) {
	operator, err := bed.Start(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.Stop()) }()
	ctx, cancel := context.WithTimeoutCause(ctx, restartLimit, fmt.Errorf("not after %s", restartLimit))
	defer cancel()
	if err := operator.AwaitReady(ctx); err != nil {
		return err
	}
	var all map[string]float64
	err = testbed.Until(ctx, fmt.Sprintf("a look at each of %d clusters", m.clusters), func() bool {
		var unread error
		all, unread = operator.Metrics(ctx)
		return unread == nil && passes(all) >= float64(m.clusters) && all[`mysql_operator_queue_depth{kind="MySQLCluster"}`] == 0
	})
	m.restart, m.restartWrites, m.wroteAtRestart = time.Since(operator.Began), writes(all), written(nil, all)
	if err != nil {
		return fmt.Errorf("%w%s", err, operator.Tail())
	}
	return nil
}

const (
	requestsMetric = "mysql_operator_api_requests_total{"
	passesMetric   = "mysql_operator_reconcile_total{"
)

// requests counts those to the API server, the Lease apart.
func requests(all map[string]float64) float64 {
	return sum(all, requestsMetric, func(labels string) bool { return !strings.Contains(labels, `resource="leases`) })
}

// writes counts the requests that may change something; asking for rights does not.
func writes(all map[string]float64) float64 {
	return sum(all, requestsMetric, isWrite)
}

func isWrite(labels string) bool {
	for _, verb := range []string{"get", "list", "watch"} {
		if strings.Contains(labels, `verb="`+verb+`"`) {
			return false
		}
	}
	return !strings.Contains(labels, `resource="leases`) && !strings.Contains(labels, `resource="selfsubject`)
}

// written lists what was written between two moments; before may be nil.
func written(before, after map[string]float64) string {
	all := make([]string, 0, len(after))
	for series, value := range after {
		labels, found := strings.CutPrefix(series, requestsMetric)
		if times := value - before[series]; found && times > 0 && isWrite(labels) {
			all = append(all, fmt.Sprintf("%.0f × %s", times, strings.TrimSuffix(labels, "}")))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func passes(all map[string]float64) float64 {
	return sum(all, passesMetric, func(labels string) bool {
		return strings.Contains(labels, `kind="MySQLCluster"`) && strings.Contains(labels, `result="done"`)
	})
}

func sum(all map[string]float64, name string, counts func(labels string) bool) float64 {
	total := 0.0
	for series, value := range all {
		if labels, found := strings.CutPrefix(series, name); found && counts(labels) {
			total += value
		}
	}
	return total
}
