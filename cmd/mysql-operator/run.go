package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
	"github.com/mysql-operator/mysql-operator/reconcile"
	"github.com/mysql-operator/mysql-operator/schema"
)

// runOptions are the flags of run.
type runOptions struct {
	kinds, namespaces             []string
	kubeconfig, agentImage        string
	secrets                       string
	vms                           vmTrust
	definitions                   definitionOptions
	leaderElect                   bool
	metricsAddress, healthAddress string
	alarmAddress                  string
	log                           cli.LogOptions
}

func (o *runOptions) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("mysql-operator run", pflag.ContinueOnError)
	kindsFlag(flags, &o.kinds)
	namespacesFlag(flags, &o.namespaces)
	secretsFlag(flags, &o.secrets)
	o.vms.register(flags)
	o.definitions.register(flags)
	kubeconfigFlag(flags, &o.kubeconfig)
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "reconcile only while this operator holds the Lease, so that one operator works at a time")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":8080", "address to serve /metrics on; empty: do not serve it")
	flags.StringVar(&o.healthAddress, "health-address", ":8081", "address to serve /healthz and /readyz on; empty: do not serve them")
	flags.StringVar(&o.alarmAddress, "alarm-address", ":8443", "address where members of clusters report failures at once, over TLS; empty: the operator only polls them")
	flags.StringVar(&o.agentImage, "agent-image", "", "image of the agents in members' Pods (default: the image of this Pod)")
	o.log.Register(flags)
	return flags
}

// operator is one execution of the subcommand run.
type operator struct {
	options  runOptions
	cluster  connection
	kinds    []schema.Kind
	log      logr.Logger
	p        cli.Process
	health   *reconcile.Health
	registry *prometheus.Registry
}

func runOperator(ctx context.Context, p cli.Process) error {
	o := runOptions{}
	if err := cli.ParseAll(o.flags(), p); err != nil {
		return err
	}
	if err := errors.Join(o.definitions.check(), checkNamespaces(o.namespaces), checkSecrets(o.secrets, o.namespaces)); err != nil {
		return err
	}
	kinds, err := schema.Select(o.kinds)
	if err != nil {
		return cli.BadUsage("%w", err)
	}
	log, err := o.log.LoggerForAll(p.Err)
	if err != nil {
		return err
	}
	cluster, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	one := operator{options: o, cluster: cluster, kinds: kinds, log: log, p: p, health: &reconcile.Health{}, registry: prometheus.NewRegistry()}
	return one.run(ctx)
}

// run serves metrics and health at once. Meanwhile it installs the definitions, checks the permissions, and reconciles. A leader serves
// health until its last pass has ended: otherwise a standby could think that it has failed.
func (o operator) run(ctx context.Context) error {
	o.log.Info("starting", "version", programVersion(), "kinds", names(o.kinds), "namespaces", o.options.namespaces, "crds", o.options.definitions.mode)
	o.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	serving, endServing := context.WithCancel(context.WithoutCancel(ctx))
	defer endServing()
	closed := o.gates()
	for _, server := range []reconcile.Server{
		{Address: o.options.metricsAddress, Handler: metricsHandler(o.registry), Log: o.log},
		{Address: o.options.healthAddress, Handler: o.health.Handler(), Log: o.log},
	} {
		if server.Address == "" {
			continue
		}
		listener, err := server.Listen(serving)
		if err != nil {
			endServing()
			return errors.Join(err, stopped(stop, group))
		}
		group.Go(func() error { return server.Serve(serving, listener) })
	}
	group.Go(func() error {
		defer endServing()
		defer stop()
		return o.work(ctx, closed)
	})
	return group.Wait()
}

// maxScrapes is how many requests for metrics are answered at once: any client may send them, and an answer grows with the number of
// clusters.
const maxScrapes = 4

// metricsHandler serves /metrics uncompressed, also to clients that accept compression, as Prometheus does. A compressor takes 800 KiB of
// heap and saves only a few tens of KiB of traffic at each scrape.
func metricsHandler(registry *prometheus.Registry) http.Handler {
	routes := http.NewServeMux()
	options := promhttp.HandlerOpts{Registry: registry, DisableCompression: true, MaxRequestsInFlight: maxScrapes}
	routes.Handle("GET /metrics", promhttp.HandlerFor(registry, options))
	return routes
}

// stopped stops the servers that were started, and returns their error.
func stopped(stop context.CancelFunc, group *errgroup.Group) error {
	stop()
	return group.Wait()
}

// work does the operator's work in this order: definitions, permissions, own image, reconciling. It returns nil when ctx ends.
func (o operator) work(ctx context.Context, closed gates) error {
	care, err := o.newCare()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range care.always {
		group.Go(func() error { return run(ctx) })
	}
	group.Go(func() error { return o.operate(ctx, care, closed) })
	return group.Wait()
}

func (o operator) operate(ctx context.Context, care *definitionManager, closed gates) error {
	if err := care.install(ctx, closed); err != nil {
		return ignoreStop(ctx, err)
	}
	closed.definitions.open()
	if err := o.awaitPermissions(ctx, closed.rights, o.grants()); err != nil {
		return ignoreStop(ctx, err)
	}
	closed.rights.open()
	own, err := o.self(ctx)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	own.alarmAddress = o.options.alarmAddress
	vCenters := newVCenters()
	made, err := controllers(o.kinds, own, vmGroupSettings(vCenters, o.cluster.namespace, o.options.vms))
	if err != nil {
		return err
	}
	askLeader, err := own.asksLeader(ctx, o.cluster, o.options.healthAddress)
	if err != nil {
		return err
	}
	manager, err := reconcile.New(reconcile.Config{
		Rest: o.cluster.rest, Namespaces: o.options.namespaces, LeaderElect: o.options.leaderElect, LeaseNamespace: o.cluster.namespace,
		Logger: o.log, Registry: o.registry, Version: programVersion(), Leading: care.lead,
		Identity: own.identity, Ask: askLeader,
	}, made)
	if err != nil {
		return err
	}
	o.health.Add("caches", manager.CachesSynced)
	closed.engine.open()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return manager.Run(ctx) })
	group.Go(func() error { return care.keep(ctx) })
	group.Go(func() error {
		o.reduceMemory(ctx)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err // at once: a pass that did not end may run concurrently with the next leader's
	}
	vCenters.End()
	return nil
}

// self returns what the operator knows of itself. With --agent-image it may run anywhere, and the engine chooses its identity.
func (o operator) self(ctx context.Context) (self, error) {
	if o.options.agentImage != "" {
		return self{image: o.options.agentImage, home: o.cluster.namespace}, nil
	}
	return ownPod(ctx, o.cluster)
}

// ignoreStop returns nil if the error only results from the end of ctx.
func ignoreStop(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// gates are the conditions for readiness, in the order in which they open.
type gates struct{ definitions, rights, engine *gate }

// gates closes all gates before the first probe: without any of them, /readyz would report that the operator is ready.
func (o operator) gates() gates {
	return gates{
		definitions: o.gate("definitions", "not yet known to be served"),
		rights:      o.gate("rights", "not yet known to be sufficient"),
		engine:      o.gate("engine", "caches not created yet"),
	}
}

// gate is a condition for readiness, closed with a reason until it is opened.
type gate struct {
	closed atomic.Pointer[string]
}

func (o operator) gate(name, why string) *gate {
	one := &gate{}
	one.say(why)
	o.health.Add(name, func() error {
		if why := one.closed.Load(); why != nil {
			return fmt.Errorf("%s", *why)
		}
		return nil
	})
	return one
}

func (g *gate) say(why string) { g.closed.Store(&why) }
func (g *gate) open()          { g.closed.Store(nil) }

func names(kinds []schema.Kind) []string {
	list := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		list = append(list, kind.Kind)
	}
	return list
}
