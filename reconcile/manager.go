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

// LeaseName is the name of the Lease by which operators elect their leader.
const LeaseName = "mysql-operator"

// Config is what the engine needs to know. Only Rest is required, and LeaseNamespace with LeaderElect.
type Config struct {
	// Rest says how to reach the API server. Its throttle (QPS, Burst) is ignored: see MaxRequests.
	Rest *rest.Config
	// Namespaces limits the work to these namespaces; Roles in them are all the operator needs then. Empty means all namespaces, which
	// needs ClusterRoles.
	Namespaces []string
	// Workers is how many objects of a kind are worked on at once, slow ones apart. Default 8.
	Workers int
	// MaxRequests is how many requests to the API server may run at once, watches and the lease apart. Default 32. The
	// reads of one resource may be half of them, and so may its writes; all writes may be three quarters.
	MaxRequests int
	// PassTimeout bounds one pass over an object. Default 60 s.
	PassTimeout time.Duration
	// SyncTimeout bounds how long the caches may take to fill at the start. Default 2 min.
	SyncTimeout time.Duration
	// DrainTimeout is how long passes may go on after the operator was told to stop. Default 20 s, within the 30 s that Kubernetes
	// gives a Pod to end.
	DrainTimeout time.Duration

	// LeaderElect makes several operators agree on one that works, by a Lease in LeaseNamespace. Off means that this one works.
	LeaderElect    bool
	LeaseNamespace string
	// Identity tells this process from all others, in the Lease and in events: two that have the same both take the Lease for theirs.
	// Default: the host's name and something random, since a Pod that is made again has its predecessor's host name.
	Identity string
	// Leading is run beside the passes for as long as this process works, and ends with its context. Nil means nothing.
	Leading func(ctx context.Context, m *Manager)
	// LeaseDuration, RenewDeadline and RetryPeriod are those of client-go's leader election. Defaults 15 s, 10 s and 2 s. What the first
	// has more than the other two together is the time that passes have to end when the Lease is lost.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Logger gets the engine's log lines, and is handed to reconcilers in their context. Default: none.
	Logger logr.Logger
	// Registry gets the metrics. Default: a registry of their own that nobody reads.
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

// RestConfig returns the client configuration the engine uses: requests made by it are counted in the metrics and bounded.
func (m *Manager) RestConfig() *rest.Config {
	return rest.CopyConfig(m.rest)
}

// CachesSynced is a check for Health: nil once all caches are filled, else an error that names those that are not.
func (m *Manager) CachesSynced() error {
	return errors.Join(m.informers.unsynced()...)
}

// InUse says whether the caches hold any object of the kind; false for a kind without a controller.
func (m *Manager) InUse(kind schema.Kind) bool {
	for _, c := range m.controllers {
		if c.Kind == kind {
			return c.own.any()
		}
	}
	return false
}

// Run fills the caches and then works, whenever this process is the leader, until ctx ends. Then it lets the passes under way finish
// (for Config.DrainTimeout), gives up the lease, and returns nil. An API server that goes away does not end it. Losing the lease does
// not either: all passes are ended, and the process is a standby again. It returns an error if the caches cannot be filled in time,
// and if a pass does not end when it must: the process must end then, because the next leader may begin.
func (m *Manager) Run(ctx context.Context) error {
	// The watches go on while the last passes finish.
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

// serverUnavailable says, at most once a minute, that passes fail because the API server does not answer.
func (m *Manager) serverUnavailable(err error) {
	m.outage.Do(func() {
		m.config.Logger.Error(err, "the API server does not answer, work goes on when it does")
	})
}
