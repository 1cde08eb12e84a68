package reconcile

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/schema"
)

// LeaseName is the name of the Lease with which operators elect their leader.
const LeaseName = "mysql-operator"

// Config is the configuration of the engine. Only Rest is required, and LeaseNamespace with LeaderElect.
type Config struct {
	// Rest configures access to the API server. Its throttle (QPS, Burst) is ignored: see MaxRequests.
	Rest *rest.Config
	// Namespaces limits the operator to these namespaces; it then needs only Roles in them. Empty means all namespaces, which requires
	// ClusterRoles.
	Namespaces []string
	// Workers is how many objects of a kind have passes at once, except slow ones. Default 8.
	Workers int
	// MaxRequests is how many requests to the API server may run at once, except watches and requests for the Lease. Default 32. The reads
	// of one resource may be half of them, and so may its writes; all writes may be three quarters.
	MaxRequests int
	// PassTimeout limits one pass over an object. Default 60 s.
	PassTimeout time.Duration
	// SyncTimeout limits how long the caches may take to fill at the start. Default 2 min.
	SyncTimeout time.Duration
	// DrainTimeout is how long running passes may continue after the operator begins to stop. Default 20 s, within the 30 s that Kubernetes
	// gives a Pod to end.
	DrainTimeout time.Duration

	// LeaderElect makes several operators elect one that reconciles, with a Lease in LeaseNamespace. If it is off, this process reconciles.
	LeaderElect    bool
	LeaseNamespace string
	// Identity distinguishes this process from all others, in the Lease and in events. Two processes with the same Identity would both
	// assume that they hold the Lease. Default: the host's name and a random suffix, because a recreated Pod has the host name of the old
	// one.
	Identity string
	// Leading runs concurrently with the passes while this process is the leader; its context ends with them. Nil means nothing.
	Leading func(ctx context.Context, m *Manager)
	// Ask asks the leader of this Identity whether it runs, and returns an error if it does not answer in time. With it, a standby takes the
	// Lease over from a leader that has failed within seconds. Nil: the Lease must expire.
	Ask func(ctx context.Context, identity string) error
	// LeaseDuration, RenewDeadline and RetryPeriod are those of client-go's leader election. Defaults 15 s, 10 s and 2 s. When the Lease is
	// lost, passes must end within LeaseDuration minus the sum of the other two.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Logger gets the engine's log lines; reconcilers get it in their context. Default: none.
	Logger logr.Logger
	// Registry gets the metrics. Default: a new registry that is not served.
	Registry *prometheus.Registry
	// Version is the operator's version, for the build_info metric and the user agent. Default "unknown".
	Version string
}

func (c Config) withDefaults() (Config, error) {
	if c.Rest == nil {
		return c, errors.New("configure the engine: Rest is missing: it says how to reach the API server")
	}
	if c.LeaderElect && c.LeaseNamespace == "" {
		return c, errors.New("configure the engine: LeaseNamespace is missing: leader election needs a namespace for its Lease")
	}
	if c.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("configure the engine: find a name for this process: %w", err)
		}
		c.Identity = host + "_" + rand.Text()[:10]
	}
	c.Namespaces = normalNamespaces(c.Namespaces)
	c.Workers = cmp.Or(c.Workers, 8)
	c.MaxRequests = cmp.Or(c.MaxRequests, 32)
	c.PassTimeout = cmp.Or(c.PassTimeout, time.Minute)
	c.SyncTimeout = cmp.Or(c.SyncTimeout, 2*time.Minute)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 20*time.Second)
	c.LeaseDuration = cmp.Or(c.LeaseDuration, 15*time.Second)
	c.RenewDeadline = cmp.Or(c.RenewDeadline, 10*time.Second)
	c.RetryPeriod = cmp.Or(c.RetryPeriod, 2*time.Second)
	if c.LeaseDuration <= c.RenewDeadline+c.RetryPeriod {
		return c, fmt.Errorf("configure the engine: LeaseDuration %s is too short: it must be longer than RenewDeadline %s and RetryPeriod %s together", c.LeaseDuration, c.RenewDeadline, c.RetryPeriod)
	}
	c.Version = cmp.Or(c.Version, "unknown")
	if c.Logger.GetSink() == nil {
		c.Logger = logr.Discard()
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	return c, nil
}

// Manager runs controllers.
type Manager struct {
	config      Config
	rest        *rest.Config
	api         dynamic.Interface
	names       resourceNames
	metrics     *metrics
	server      *serverClock
	informers   *informers
	controllers []*controller
	now         func() time.Time
	outage      rate.Sometimes
}

// New makes a Manager for the kinds' controllers. It sends no request yet.
func New(config Config, controllers []Controller) (*Manager, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	measured, err := newMetrics(config.Registry, config.Version)
	if err != nil {
		return nil, err
	}
	server := &serverClock{now: time.Now}
	config.Rest = server.listenTo(config.Rest)
	instrumented := instrument(config.Rest, measured, config.MaxRequests)
	if instrumented.UserAgent == "" {
		instrumented.UserAgent = "mysql-operator/" + config.Version
	}
	api, err := dynamic.NewForConfig(instrumented)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	metadataAPI, err := metadata.NewForConfig(instrumented)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server for metadata: %w", err)
	}
	m := &Manager{
		config:    config,
		rest:      instrumented,
		api:       api,
		names:     resourceNames{},
		metrics:   measured,
		server:    server,
		informers: newInformers(api, metadataAPI, config.Namespaces, config.Logger),
		now:       time.Now,
		outage:    rate.Sometimes{Interval: time.Minute},
	}
	if err := m.add(controllers); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Manager) add(controllers []Controller) error {
	caches := map[string]Lister{}
	for _, spec := range controllers {
		if _, twice := caches[spec.Kind.Kind]; twice {
			return fmt.Errorf("reconcile %s: the kind has two controllers", spec.Kind.Kind)
		}
		added, err := newController(spec, m.informers, m.config.Logger)
		if err != nil {
			return err
		}
		m.names[spec.Kind.GVK()] = spec.Kind.GVR()
		m.controllers = append(m.controllers, added)
		caches[spec.Kind.Kind] = added.own
		if spec.Metrics == nil {
			continue
		}
		if err := m.config.Registry.Register(spec.Metrics(added.own)); err != nil {
			return fmt.Errorf("register metrics of %s: %w", spec.Kind.Kind, err)
		}
	}
	if err := m.config.Registry.Register(newObjectStates(caches)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// RestConfig returns the client configuration that the engine uses: its requests are counted in the metrics and limited.
func (m *Manager) RestConfig() *rest.Config {
	return rest.CopyConfig(m.rest)
}

// CachesSynced is a check for Health: nil once all caches are filled, else an error that names those that are not.
func (m *Manager) CachesSynced() error {
	return errors.Join(m.informers.unsynced()...)
}

// InUse reports whether the caches hold any object of the kind; false for a kind without a controller.
func (m *Manager) InUse(kind schema.Kind) bool {
	for _, c := range m.controllers {
		if c.Kind == kind {
			return c.own.any()
		}
	}
	return false
}

// Run fills the caches. Then, until ctx ends, it reconciles whenever this process is the leader. When ctx ends, Run waits for running
// passes (Config.DrainTimeout), releases the Lease, and returns nil. Run continues if the API server becomes unavailable. It also continues
// if it loses the Lease: it ends all passes, and the process is a standby again. Run returns an error if the caches cannot be filled in
// time, or if a pass does not end in time. The process must end then, because the next leader may begin.
func (m *Manager) Run(ctx context.Context) error {
	// The watches continue while the last passes finish.
	watching, stop := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), m.config.Logger))
	defer m.informers.wait()
	defer stop()
	m.informers.start(watching)

	if err := m.informers.sync(ctx, m.config.SyncTimeout); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	m.config.Logger.Info("caches filled", "namespaces", m.informers.namespaces)
	if !m.config.LeaderElect {
		return m.work(ctx, nil)
	}
	return m.campaign(ctx)
}

// serverUnavailable logs, at most once a minute, that passes fail because the API server does not answer.
func (m *Manager) serverUnavailable(err error) {
	m.outage.Do(func() {
		m.config.Logger.Error(err, "the API server does not answer, reconciling continues when it does")
	})
}
