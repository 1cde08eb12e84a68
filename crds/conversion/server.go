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
	// DefaultPoll is how often the Secret is read: what one replica renews, all serve this long after.
	DefaultPoll = 5 * time.Second
	// DefaultSettle is how long a definition must have carried a new CA before anything is served that only that CA signed: API servers
	// learn of definitions by watching, and one may be behind.
	DefaultSettle = 30 * time.Second
	// DefaultOverlap is how long an old CA stays trusted after the last certificate of it was replaced.
	DefaultOverlap = time.Hour
	// DefaultReach is how long to wait for the Service to lead to this Pod before the definition names it.
	DefaultReach = 10 * time.Second

	// callTimeout bounds one request to the API server.
	callTimeout = 10 * time.Second
	// leaving is how long a Pod that ends goes on to serve after it took its label off: the time for every node to hear of it.
	leaving = 3 * time.Second
	// requestTimeout bounds one request to the webhook; API servers wait 30 seconds for a conversion.
	requestTimeout = 30 * time.Second
	// maxConnections is how many connections API servers may have: one for each request that they convert objects for at the same time.
	maxConnections = 512
	// answerTime is the time to send an answer after that.
	answerTime = 5 * time.Second

	servePath = "/convert"
)

// Definitions reads definitions, live. (crds.API does.)
type Definitions interface {
	Get(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error)
}

// Config says how a Server works.
type Config struct {
	// Rest leads to the cluster.
	Rest *rest.Config
	// Registry has the converters.
	Registry *Registry
	// Owner is the value of app.kubernetes.io/managed-by on what is made here, and the prefix of field managers. Domain is that of labels.
	Owner, Domain string
	// Namespace and Name are those of the Secret and the Service.
	Namespace, Name string
	// Version is the order of what this program can convert: the highest schema version it brings. A Service of a higher one is left alone.
	Version int
	// Pod names this process's own Pod, in Namespace, which is labelled for the Service to find. Empty outside the cluster, with URL.
	Pod string
	// URL, if not empty, is where API servers reach the webhook instead of by a Service: https, with the host and port of Address. Its
	// path is "/convert". For operators outside the cluster.
	URL string
	// Address is where to listen; empty means DefaultAddress. Listener, if not nil, is listened on instead.
	Address  string
	Listener net.Listener
	// Definitions and Names tell which definitions carry our CA, so that no certificate is served before it is trusted.
	Definitions Definitions
	Names       []string
	// Poll, Settle, Overlap and Reach are times; 0 means the defaults above.
	Poll, Settle, Overlap, Reach time.Duration
	// Observe is handed to NewHandler.
	Observe func(Observation)
	Log     logr.Logger
}

func (c Config) fieldManager() string { return c.Owner + "-conversion" }

// hosts are the names by which API servers call the webhook, the main one first.
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
		return errors.New("it needs Rest, Registry and Definitions")
	case slices.Contains([]string{c.Owner, c.Domain, c.Namespace, c.Name}, ""):
		return errors.New("it needs Owner, Domain, Namespace and Name")
	case c.URL == "" && c.Pod == "":
		return errors.New("it needs the name of its own Pod, for a Service to lead to it, or a URL")
	case c.URL == "":
		return nil
	}
	parsed, err := url.Parse(c.URL)
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.Path != servePath {
		return fmt.Errorf("URL %q must be https://HOST:PORT%s", c.URL, servePath)
	}
	return nil
}

// Server serves conversions, with certificates that it makes, shares with its replicas by a Secret, and renews.
type Server struct {
	config  Config
	store   store
	core    corev1client.CoreV1Interface
	handler http.Handler
	held    atomic.Pointer[material]
	// retiring is true once the process ends: every answer then ends its connection, so that API servers connect to another replica.
	retiring atomic.Bool
	// refreshing keeps an older look at the Secret from replacing a newer one.
	refreshing sync.Mutex
	// ready is closed once conversions are served and API servers can reach them.
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

// Run serves conversions until ctx ends, which is no error. Every replica runs it, leader or not. Trouble with the API server is logged
// and overcome; only that it cannot listen ends it.
func (s *Server) Run(ctx context.Context) error {
	listener := s.config.Listener
	if listener == nil {
		opened, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Address)
		if err != nil {
			return fmt.Errorf("listen for conversions: %w", err)
		}
		listener = opened
	}
	// API servers have no certificate to show, and use their connections again.
	server := listen.Server{Handler: s.handler, TLS: s.tls(), KeepStrangers: true, Strangers: maxConnections, Request: requestTimeout + answerTime, Log: s.config.Log}
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, listener) }()
	following, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		s.follow(following)
	}()

	var err error
	select {
	case <-ctx.Done():
		stop()
		<-followed
		s.sendElsewhere(context.WithoutCancel(ctx))
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

// sendElsewhere takes this Pod away from API servers before it stops to serve.
func (s *Server) sendElsewhere(ctx context.Context) {
	if err := s.retire(ctx); err != nil {
		s.config.Log.Info("could not take this Pod out of the conversion webhook's Service, it ends by itself", "error", err.Error())
	}
}

// tls serves whatever certificate is held at the moment of a connection.
func (s *Server) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			held := s.held.Load()
			if held == nil {
				return nil, errors.New("the certificate is not there yet")
			}
			return held.serving, nil
		},
	}
}

// follow keeps up with the Secret, and once there is a certificate makes this replica reachable.
func (s *Server) follow(ctx context.Context) {
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

// Lead renews certificates, and heals the Service, until ctx ends. Only the leader runs it; two at a time do no harm.
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

// report logs trouble once, until it is another or over.
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

// trust remembers since when which CA is in every definition.
type trust struct {
	serial string
	since  time.Time
}

// trusted says whether all definitions that call this webhook have carried the newest CA for a while.
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

// Conversion waits until this replica serves conversions and API servers can reach it, and returns what the definition's spec.conversion
// has to be. It changes when the CA does: a definition that says otherwise is to be brought in line, by the leader at least every minute.
func (s *Server) Conversion(ctx context.Context) (*apiextensionsv1.CustomResourceConversion, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait until conversions are served, by Secret and Service %s/%s: %w", s.config.Namespace, s.config.Name, context.Cause(ctx))
	}
	client := Client(s.config)
	client.CABundle = s.held.Load().bundle()
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &client, ConversionReviewVersions: []string{apiextensionsv1.SchemeGroupVersion.Version}},
	}, nil
}

// Client returns where API servers reach the webhook of the configuration, without a CA.
func Client(config Config) apiextensionsv1.WebhookClientConfig {
	if config.URL != "" {
		return apiextensionsv1.WebhookClientConfig{URL: &config.URL}
	}
	path, port := servePath, int32(servicePort)
	return apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: config.Namespace, Name: config.Name, Path: &path, Port: &port}}
}

// label is the label that Pods carry which convert, and its value for this program.
func (c Config) label() (name, value string) {
	return c.Domain + "/converts", strconv.Itoa(c.Version)
}
