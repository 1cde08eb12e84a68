package conversion

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mysql-operator/mysql-operator/listen"
)

const (
	// DefaultAddress is where the webhook listens.
	DefaultAddress = ":9444"
	// DefaultPoll is the time between two reads of the Secret. All replicas serve a renewed certificate this long after the renewal.
	DefaultPoll = 5 * time.Second
	// DefaultSettle is how long a definition must have contained a new CA before replicas serve a certificate that only this CA signed. API
	// servers watch definitions, and one of them may be late.
	DefaultSettle = 30 * time.Second
	// DefaultOverlap is how long an old CA stays trusted after its last certificate was replaced.
	DefaultOverlap = time.Hour
	// DefaultReach is how long to wait until the Service routes to this Pod, before the definition names the Service.
	DefaultReach = 10 * time.Second

	// callTimeout bounds one request to the API server.
	callTimeout = 10 * time.Second
	// drainTime is how long a Pod that ends continues to serve after it removed its label: the time until every node has updated its routes.
	drainTime = 3 * time.Second
	// requestTimeout bounds one request to the webhook; API servers wait 30 seconds for a conversion.
	requestTimeout = 30 * time.Second
	// maxConnections is how many connections API servers may have: one for each concurrent request that needs a conversion.
	maxConnections = 512
	// answerTime is the time to send an answer after requestTimeout.
	answerTime = 5 * time.Second

	servePath = "/convert"
)

// Definitions reads definitions from the API server, not from a cache. (crds.API implements it.)
type Definitions interface {
	Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error)
}

// Config configures a Server.
type Config struct {
	// Rest is the configuration of the cluster's API client.
	Rest *rest.Config
	// Registry has the converters.
	Registry *Registry
	// Owner is the value of app.kubernetes.io/managed-by on the objects that the Server makes, and the prefix of field managers. Domain is
	// the prefix of labels.
	Owner, Domain string
	// Namespace and Name are those of the Secret and the Service.
	Namespace, Name string
	// Version is the order of what this program can convert: its highest schema version. The Server does not change a Service of a higher
	// one.
	Version int
	// Pod is the name of this process's own Pod, in Namespace. The Server labels it for the Service. Empty outside the cluster, with URL.
	Pod string
	// URL, if not empty, is where API servers reach the webhook without a Service: https, with the host and port of Address. Its path is
	// "/convert". It is for operators outside the cluster.
	URL string
	// Address is where to listen; empty means DefaultAddress. Listener, if not nil, is used instead.
	Address  string
	Listener net.Listener
	// Definitions and Names show which definitions contain our CA, so that no certificate is served before API servers trust it.
	Definitions Definitions
	Names       []string
	// Poll, Settle, Overlap and Reach are times; 0 means the defaults above.
	Poll, Settle, Overlap, Reach time.Duration
	// Observe is passed to NewHandler.
	Observe func(Observation)
	Log     logr.Logger
}

func (c Config) fieldManager() string { return c.Owner + "-conversion" }

// hosts returns the names by which API servers call the webhook, the main one first.
func (c Config) hosts() []string {
	if c.URL == "" {
		return []string{c.Name + "." + c.Namespace + ".svc"}
	}
	parsed, err := url.Parse(c.URL)
	if err != nil {
		return nil // NewServer refused it
	}
	return []string{parsed.Hostname()}
}

func (c Config) check() error {
	switch {
	case c.Rest == nil || c.Registry == nil || c.Definitions == nil:
		return errors.New("the fields Rest, Registry and Definitions must be set")
	case slices.Contains([]string{c.Owner, c.Domain, c.Namespace, c.Name}, ""):
		return errors.New("the fields Owner, Domain, Namespace and Name must be set")
	case c.URL == "" && c.Pod == "":
		return errors.New("either Pod (the name of this process's own Pod) or URL must be set")
	case c.URL == "":
		return nil
	}
	parsed, err := url.Parse(c.URL)
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.Path != servePath {
		return fmt.Errorf("URL %q must be https://HOST:PORT%s", c.URL, servePath)
	}
	return nil
}

// Server serves conversions. It makes and renews its certificates, and shares them with its replicas in a Secret.
type Server struct {
	config  Config
	store   store
	core    corev1client.CoreV1Interface
	handler http.Handler
	held    atomic.Pointer[material]
	// retiring is true when the process ends. Every answer then ends its connection, so that API servers connect to another replica.
	retiring atomic.Bool
	// refreshing prevents that an older content of the Secret replaces a newer one.
	refreshing sync.Mutex
	// ready is closed when this replica serves conversions and API servers can reach it.
	ready chan struct{}
}

// NewServer returns a server that does nothing yet. An error means a mistake in the configuration.
func NewServer(config Config) (*Server, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("configure the conversion webhook: %w", err)
	}
	config.Address = cmp.Or(config.Address, DefaultAddress)
	config.Poll, config.Settle = cmp.Or(config.Poll, DefaultPoll), cmp.Or(config.Settle, DefaultSettle)
	config.Overlap, config.Reach = cmp.Or(config.Overlap, DefaultOverlap), cmp.Or(config.Reach, DefaultReach)
	own := rest.CopyConfig(config.Rest)
	own.QPS, own.RateLimiter, own.Timeout = -1, nil, callTimeout
	core, err := corev1client.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("make a client for the conversion webhook: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(servePath, NewHandler(config.Registry, config.Observe))
	server := &Server{
		config: config,
		core:   core,
		store:  store{secrets: core.Secrets(config.Namespace), config: config, manager: config.fieldManager() + "-" + rand.Text()[:8], now: time.Now},
		ready:  make(chan struct{}),
	}
	server.handler = server.endConnections(http.TimeoutHandler(mux, requestTimeout, "the conversion took too long"))
	return server, nil
}

// endConnections makes each answer the last of its connection while this replica retires.
func (s *Server) endConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.retiring.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Run serves conversions until ctx ends, which is no error. Every replica runs it, leader or not. Run logs errors of the API server and
// retries. It ends with an error only if it cannot listen or serve.
func (s *Server) Run(ctx context.Context) error {
	listener := s.config.Listener
	if listener == nil {
		opened, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Address)
		if err != nil {
			return fmt.Errorf("listen for conversions: %w", err)
		}
		listener = opened
	}
	// API servers have no client certificate, and reuse their connections.
	server := listen.Server{Handler: s.handler, TLS: s.tls(), KeepStrangers: true, Strangers: maxConnections, Request: requestTimeout + answerTime, Log: s.config.Log}
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, listener) }()
	following, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		s.pollSecret(following)
	}()

	var err error
	select {
	case <-ctx.Done():
		stop()
		<-followed
		s.leaveService(context.WithoutCancel(ctx))
		stopServing()
		err = <-served
	case err = <-served:
	}
	stop()
	<-followed
	if err != nil {
		return fmt.Errorf("serve conversions: %w", err)
	}
	return nil
}

// leaveService removes this Pod from the Service before it stops serving.
func (s *Server) leaveService(ctx context.Context) {
	if err := s.retire(ctx); err != nil {
		s.config.Log.Info("failed to remove this Pod from the conversion webhook's Service; the end of the Pod removes it", "error", err.Error())
	}
}

// tls serves the certificate that the Server has at the time of a connection.
func (s *Server) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			held := s.held.Load()
			if held == nil {
				return nil, errors.New("there is no certificate yet")
			}
			return held.serving, nil
		},
	}
}

// pollSecret polls the Secret, and makes this replica reachable when there is a certificate.
func (s *Server) pollSecret(ctx context.Context) {
	reachable, fault := false, ""
	s.every(ctx, func() {
		err := s.refresh(ctx, false, untrusted)
		if err == nil && !reachable {
			if err = s.announce(ctx); err == nil {
				reachable = true
				close(s.ready)
			}
		}
		fault = s.report(ctx, err, fault)
	})
}

// Lead renews certificates, and repairs the Service, until ctx ends. Only the leader runs it, but two at a time do no harm.
func (s *Server) Lead(ctx context.Context) {
	trust, fault := trust{}, ""
	s.every(ctx, func() {
		if s.held.Load() == nil {
			return // Run makes the first
		}
		err := s.refresh(ctx, true, func(held *material) bool { return s.trusted(ctx, held, &trust) })
		if err == nil && s.config.URL == "" {
			err = s.applyService(ctx)
		}
		fault = s.report(ctx, err, fault)
	})
}

func (s *Server) every(ctx context.Context, do func()) {
	ticker := time.NewTicker(s.config.Poll)
	defer ticker.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// report logs an error once, until another error occurs or none.
func (s *Server) report(ctx context.Context, err error, reported string) string {
	if ctx.Err() != nil || err == nil {
		return ""
	}
	if err.Error() != reported {
		s.config.Log.Error(err, "conversion webhook", "namespace", s.config.Namespace, "name", s.config.Name)
	}
	return err.Error()
}

func (s *Server) refresh(ctx context.Context, leads bool, trusted func(*material) bool) error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	held, err := s.store.sync(ctx, s.held.Load(), leads, trusted)
	if err != nil {
		return err
	}
	s.held.Store(held)
	return nil
}

func untrusted(*material) bool { return false }

// trust records which CA is in every definition, and since when.
type trust struct {
	serial string
	since  time.Time
}

// trusted reports whether all definitions that call this webhook have contained the newest CA for Settle.
func (s *Server) trusted(ctx context.Context, held *material, known *trust) bool {
	for _, name := range s.config.Names {
		definition, err := s.config.Definitions.Get(ctx, name)
		if err != nil {
			*known = trust{}
			return false
		}
		if hook := definition.Spec.Conversion; hook != nil && hook.Webhook != nil && hook.Webhook.ClientConfig != nil && !held.trustedBy(hook.Webhook.ClientConfig.CABundle) {
			*known = trust{}
			return false
		}
	}
	now := s.store.now()
	if serial := held.authorities[0].SerialNumber.String(); known.serial != serial {
		*known = trust{serial: serial, since: now}
	}
	return now.Sub(known.since) >= s.config.Settle
}

// Conversion waits until this replica serves conversions and API servers can reach it. It returns the spec.conversion that the definition
// must have. The value changes with the CA, so the leader must compare it with the definition, and update the definition, at least every
// minute.
func (s *Server) Conversion(ctx context.Context) (*apiextensionsv1.CustomResourceConversion, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait until the conversion webhook serves, with Secret and Service %s/%s: %w", s.config.Namespace, s.config.Name, context.Cause(ctx))
	}
	client := Client(s.config)
	client.CABundle = s.held.Load().bundle()
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &client, ConversionReviewVersions: []string{apiextensionsv1.SchemeGroupVersion.Version}},
	}, nil
}

// Client returns the client configuration for API servers, without a CA.
func Client(config Config) apiextensionsv1.WebhookClientConfig {
	if config.URL != "" {
		return apiextensionsv1.WebhookClientConfig{URL: &config.URL}
	}
	path, port := servePath, int32(servicePort)
	return apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: config.Namespace, Name: config.Name, Path: &path, Port: &port}}
}

// label returns the label of Pods that convert, and its value for this program.
func (c Config) label() (name, value string) {
	return c.Domain + "/converts", strconv.Itoa(c.Version)
}
