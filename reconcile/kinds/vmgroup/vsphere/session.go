//go:build !without_vcenter

package vsphere

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/fault"
	govsession "github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// The pauses after failures, which double with each failure. A vCenter locks an account after five wrong passwords in three minutes
// (vSphere documentation, "vCenter Single Sign-On Lockout Policy"): the pause after a wrong password is longer than that allows.
const (
	pauseFirst        = time.Second
	pauseCap          = time.Minute
	pauseRefusedFirst = time.Minute
	pauseRefusedCap   = 10 * time.Minute
)

// session is one account's use of its vCenter.
type session struct {
	account vcenter.Account
	now     func() time.Time
	lastUse atomic.Int64
	// requests is full while the vCenter has as many calls as it gets at the same time.
	requests chan struct{}
	// opening is held by the goroutine that opens the session.
	opening chan struct{}
	// searches is full while as many searches run as the vCenter gets at the same time.
	searches chan struct{}

	mu       sync.Mutex
	client   *vim25.Client
	failures int
	// last is the vCenter's last error, and until is how long to return it without another request.
	last  *vcenter.Error
	until time.Time
	// places has the sites that were found, by the groups' places.
	places map[vcenter.Place]*site
	// templates has the templates that spellings mean.
	templates map[templateName]identified
	// tasks has the tasks in progress, and failed the last failures.
	tasks  map[taskTarget]runningTask
	failed map[failureKey]failure
	// missing has machines of groups that are being deleted which a search did not find, and until when to assume that.
	missing map[taskTarget]time.Time
}

// openSession is a session during one call: its client stays the same, even if another call replaces the session's client.
type openSession struct {
	*session
	client *vim25.Client
}

func newSession(account vcenter.Account, now func() time.Time) *session {
	return &session{
		account: account, now: now, requests: make(chan struct{}, maxRequests), opening: make(chan struct{}, 1), searches: make(chan struct{}, searchesAtOnce),
		places: map[vcenter.Place]*site{}, templates: map[templateName]identified{}, tasks: map[taskTarget]runningTask{}, failed: map[failureKey]failure{}, missing: map[taskTarget]time.Time{},
	}
}

// ask makes a call when it is its turn.
func (s *session) ask(ctx context.Context, what func(context.Context, openSession) error) error {
	if err := s.backoffError(); err != nil {
		return err
	}
	select {
	case s.requests <- struct{}{}:
		defer func() { <-s.requests }()
	case <-ctx.Done():
		return s.judged(ctx, ctx.Err())
	}
	for attempt := 0; ; attempt++ {
		client, err := s.open(ctx)
		if err != nil {
			return err
		}
		err = what(ctx, openSession{session: s, client: client})
		if attempt == 0 && fault.Is(err, &types.NotAuthenticated{}) {
			s.forget(client)
			continue
		}
		return s.judged(ctx, err)
	}
}

// backoffError returns the vCenter's last error during a pause.
func (s *session) backoffError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.until.Sub(s.now()); s.last != nil && left > 0 {
		return &vcenter.Error{Reason: s.last.Reason, Message: s.last.Message, After: left}
	}
	return nil
}

// judged returns the meaning of an error. After an error that concerns the vCenter as a whole, all calls pause.
func (s *session) judged(ctx context.Context, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.failures, s.last = 0, nil
		return nil
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return ctx.Err()
	}
	meant := errorFor(err, s.account)
	first, limit := pauseFirst, pauseCap
	switch meant.Reason {
	case vcenter.Unreachable:
	case vcenter.LoginRefused:
		first, limit = pauseRefusedFirst, pauseRefusedCap
	case vcenter.Untrusted:
		limit = 5 * pauseCap
	case vcenter.Forbidden, vcenter.NoPlace, vcenter.NoTemplate, vcenter.MachineMoved, vcenter.Failed, vcenter.Moved, vcenter.TooManyAccounts, vcenter.HelperNotRunning:
		s.failures, s.last = 0, nil // the vCenter answered
		return meant
	}
	if s.last != nil && s.until.After(s.now()) {
		return meant // another call has recorded it already
	}
	meant.After = min(first<<min(s.failures, 10), limit)
	s.failures++
	s.last, s.until = meant, s.now().Add(meant.After)
	return meant
}

// open returns the client of an open session. It judges its error before another call may try: so no second call sends a wrong password.
func (s *session) open(ctx context.Context) (*vim25.Client, error) {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, s.judged(ctx, ctx.Err())
	}
	if client := s.current(); client != nil {
		return client, nil
	}
	if err := s.backoffError(); err != nil {
		return nil, err
	}
	client, err := login(ctx, s.account)
	if err != nil {
		return nil, s.judged(ctx, loginErrorFor(err, s.account))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
	return client, nil
}

func (s *session) current() *vim25.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// forget forgets a client whose session has ended.
func (s *session) forget(client *vim25.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == client {
		s.client = nil
	}
}

func (s *session) logout(ctx context.Context) {
	if client := s.current(); client != nil {
		// If this fails, the vCenter ends the session itself later.
		_ = govsession.NewManager(client).Logout(ctx)
		client.CloseIdleConnections()
	}
}

func login(ctx context.Context, account vcenter.Account) (*vim25.Client, error) {
	endpoint, err := endpointOf(account.Host)
	if err != nil {
		return nil, err
	}
	wire := soap.NewClient(endpoint, account.Insecure)
	wire.Timeout = requestTime
	wire.UserAgent = "mysql-operator"
	wire.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if account.Authorities != "" {
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM([]byte(account.Authorities)) {
			return nil, &vcenter.Error{Reason: vcenter.Untrusted, Message: "VC_CA of the Secret vc-creds has no certificate in PEM: put the vCenter's CA certificate there (https://" + account.Host + "/certs/download.zip has it)"}
		}
		wire.DefaultTransport().TLSClientConfig.RootCAs = trusted
	}
	wire.DefaultTransport().TLSClientConfig.MinVersion = tls.VersionTLS12
	client, err := vim25.NewClient(ctx, wire)
	if err != nil {
		return nil, err
	}
	if !client.IsVC() {
		return nil, &vcenter.Error{Reason: vcenter.Unreachable, Message: account.Host + " is an ESXi host, not a vCenter, and cannot clone: name the vCenter in VC_HOST"}
	}
	if err := govsession.NewManager(client).Login(ctx, url.UserPassword(account.User, account.Password)); err != nil {
		return nil, err
	}
	return client, nil
}

// endpointOf returns the URL of a vCenter's API. VC_HOST is a name, an address, either with a port, or the whole URL.
func endpointOf(host string) (*url.URL, error) {
	if strings.Contains(host, "@") {
		// The message leaves out the host, because it may contain a password.
		return nil, &vcenter.Error{Reason: vcenter.Unreachable, Message: "VC_HOST contains a user or a password: put them into VC_USER and VC_PASS, and use a host such as vcenter.example.com, 10.0.0.1 or 10.0.0.1:443"}
	}
	given := host
	if !strings.Contains(host, "://") {
		given = "https://" + host
	}
	endpoint, err := url.Parse(given)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" {
		return nil, &vcenter.Error{Reason: vcenter.Unreachable, Message: fmt.Sprintf("VC_HOST %q is not the name or address of a vCenter: use a host such as vcenter.example.com, 10.0.0.1 or 10.0.0.1:443", host)}
	}
	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = "/sdk"
	}
	return endpoint, nil
}
