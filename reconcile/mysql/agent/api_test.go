package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

const memberHost = "db-0.db-pods.shop.svc"

// served is an agent that answers on a separate loopback address.
type served struct {
	agent   *Agent
	layout  Layout
	ca      authority
	address string
}

func serve(t *testing.T) served {
	t.Helper()
	layout, ca := newLayout(t), newAuthority(t)
	ca.install(layout, 2, memberHost)
	member := newAgent(t, layout, memberState())
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		if err := member.Serve(ctx, net.JoinHostPort(address, fmt.Sprint(Port))); err != nil {
			ended <- err
		}
	}()
	t.Cleanup(func() {
		cancel()
		for err := range ended {
			t.Errorf("the server ended with %v", err)
		}
	})
	s := served{agent: member, layout: layout, ca: ca, address: address}
	for attempt := 0; ; attempt++ {
		connection, err := net.DialTimeout("tcp", net.JoinHostPort(address, fmt.Sprint(Port)), time.Second)
		if err == nil {
			_ = connection.Close()
			return s
		}
		if attempt == 100 {
			t.Fatalf("the server does not listen: %v", err)
		}
		select {
		case err := <-ended:
			t.Fatalf("the server ended before it listened: %v", err)
		case <-time.After(20 * time.Millisecond): // the listener opens in its own goroutine and does not signal it
		}
	}
}

// freeAddress finds a loopback address on which the agents' port is free. Clients know no other port.
func freeAddress(t *testing.T) string {
	t.Helper()
	for a := 1; a < 255; a++ {
		address := fmt.Sprintf("127.94.%d.1", a)
		// The guard is open until the test ends. It is opened before the agents' port is tried: the other tests do not try the port of an
		// address that is taken.
		guard, err := net.Listen("tcp", net.JoinHostPort(address, "9444"))
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = guard.Close() })
		listener, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(Port)))
		if err != nil {
			continue
		}
		_ = listener.Close()
		return address
	}
	t.Skip("this machine has no loopback address other than 127.0.0.1")
	return ""
}

func (s served) ask(t *testing.T, security *tls.Config, method, path string) (int, string, error) {
	t.Helper()
	security = security.Clone()
	security.ServerName = memberHost
	transport := &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	body := fmt.Sprintf(`{"boot":%q}`, s.agent.Status().Boot) // an assignment for this start of mysqld
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+net.JoinHostPort(s.address, fmt.Sprint(Port))+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

func TestOnlyTheOperatorMayAsk(t *testing.T) {
	t.Parallel()
	s := serve(t)
	stranger := newAuthorityOf(t, s.ca.cert.Subject) // with a CA of another name, the client would not present its certificate
	strangersCard := s.ca.client("")
	strangersCard.Certificates = stranger.client(OperatorName).Certificates
	tests := map[string]struct {
		security *tls.Config
		status   int
		assigns  int
		matches  int // the member is not a primary, and refuses
	}{
		"the operator":                                     {s.ca.client(OperatorName), http.StatusOK, http.StatusNoContent, http.StatusConflict},
		"a client without a certificate":                   {s.ca.client(""), http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized},
		"another member":                                   {s.ca.client("db.shop"), http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized},
		"a name that only begins like the operator's":      {s.ca.client(OperatorName + ".shop"), http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized},
		"the operator of another cluster, with another CA": {strangersCard, 0, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for path, want := range map[string]int{"GET " + statusPath: test.status, "PUT " + assignmentPath: test.assigns, "PUT " + hollowPath: test.matches} {
				method, route, _ := strings.Cut(path, " ")
				got, body, err := s.ask(t, test.security, method, route)
				if got != want || (err != nil) != (want == 0) {
					t.Errorf("%s: got %d %q (%v), want %d", path, got, body, err, want)
				}
			}
		})
	}
}

func TestProbesNeedNoCertificate(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for path, want := range map[string]int{
		"/startupz": http.StatusServiceUnavailable, // mysqld has never answered
		"/readyz":   http.StatusServiceUnavailable,
		"/livez":    http.StatusOK, // it may be recovering
		"/healthz":  http.StatusOK,
		"/metrics":  http.StatusOK,
		"/":         http.StatusNotFound,
	} {
		got, body, err := s.ask(t, s.ca.client(""), http.MethodGet, path)
		if err != nil || got != want {
			t.Errorf("%s: got %d %q (%v), want %d", path, got, body, err, want)
		}
		if path == "/metrics" && !strings.Contains(body, `mysql_operator_member_state{state="Starting"} 1`) {
			t.Errorf("the state is missing in the metrics:\n%s", body)
		}
	}
}

// TestAReplicaStaysReadyWhileThePrimaryIsReplaced: clients need not wait for kubelet's next look. One that did not serve does not begin to.
func TestAReplicaStaysReadyWhileThePrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	for state, want := range map[replication.State]bool{replication.StateReplicating: true, replication.StateCatchingUp: false} {
		member := newAgent(t, newLayout(t), memberState())
		follows := replication.Assignment{
			Protocol: replication.Protocol, Role: replication.RoleReplica, Boot: member.Status().Boot,
			Record: replication.Record{Epoch: 1, Revision: 1, Primary: "db-0", InSync: []string{"db-0", "db-1"}},
		}
		if err := member.Assign(follows); err != nil {
			t.Fatal(err)
		}
		member.status.State = state
		turns := follows
		turns.Record = replication.Record{Epoch: 2, Revision: 2, FormerPrimary: "db-0", InSync: follows.Record.InSync}
		if err := member.Assign(turns); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		for _, during := range []replication.State{replication.StateCatchingUp, replication.StatePromoting} {
			member.status.State = during
			if got := member.ready(now) == nil; got != want {
				t.Errorf("it was %s and is %s now: ready is %t, want %t", state, during, got, want)
			}
			if member.ready(now.Add(choiceFor)) == nil {
				t.Errorf("it was %s and is %s now: it is ready without end", state, during)
			}
		}
		chosen := turns
		chosen.Record = replication.Record{Epoch: 2, Revision: 3, Primary: "db-1", InSync: []string{"db-1"}}
		chosen.InSync = true
		for range 2 { // the second one comes later, and does not prolong it
			if err := member.Assign(chosen); err != nil {
				t.Fatal(err)
			}
			chosen.Record.Revision++
		}
		member.status.State = replication.StateCatchingUp
		now = time.Now()
		if got := member.ready(now) == nil; got != want || member.ready(now.Add(turnsFor)) == nil {
			t.Errorf("it was %s, and the next primary is chosen: ready is %t, or ready without end", state, got)
		}
		for _, during := range []replication.State{replication.StateStarting, replication.StateBroken, replication.StateErrant, replication.StateCloning} {
			member.status.State = during
			if member.ready(now) == nil {
				t.Errorf("it was %s and is %s now: it is ready", state, during)
			}
		}
		chosen.InSync, member.status.State = false, replication.StateCatchingUp
		if err := member.Assign(chosen); err != nil || member.ready(now) == nil {
			t.Errorf("it was %s, and is not in sync any more: it is ready (%v)", state, err)
		}
	}
}

// TestAnAgentThatBeganWhileMysqldHung: mysqld has never answered this agent, but it is not starting.
func TestAnAgentThatBeganWhileMysqldHung(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	hangs := fmt.Errorf("log in: %w", context.DeadlineExceeded)
	member.unanswered(hangs, followed{})
	later := time.Now().Add(hungAfter + time.Second)
	member.unanswered(hangs, followed{})
	member.looked = later
	if err := member.alive(later); err == nil {
		t.Error("no client can log in to mysqld for too long, but mysqld counts as alive")
	}
	member.unanswered(errors.New("access denied"), followed{})
	member.looked = later
	if err := member.alive(later); err != nil {
		t.Errorf("mysqld answers: %v", err)
	}
}

func TestProbesTellTheTruth(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	now := time.Now()
	if err := member.started(); err == nil {
		t.Error("started before mysqld ever answered")
	}
	observed := someObservation()
	observed.Server.SuperReadOnly = false
	local := member.localView(observed)
	member.publish(observed, local, replication.NextStep(local), followed{})
	for what, err := range map[string]error{"started": member.started(), "alive": member.alive(now), "turning": member.loopRunning(now), "ready": member.ready(now)} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	observed.LoginsHang = true
	member.answered = now.Add(-hungAfter - time.Second)
	member.publish(observed, local, replication.NextStep(local), followed{})
	if err := member.alive(now); err == nil {
		t.Error("no client can log in to mysqld for too long, but mysqld counts as alive")
	}
	member.answered = now
	member.unanswered(errors.New("hangs"), followed{})
	later := now.Add(hungAfter + 2*time.Second)
	if err := member.ready(now); err == nil {
		t.Error("ready without mysqld")
	}
	if err := member.alive(now.Add(time.Second)); err != nil {
		t.Errorf("mysqld counts as hung after a second: %v", err)
	}
	member.mu.Lock()
	member.looked = later
	member.mu.Unlock()
	if err := member.alive(later); err == nil {
		t.Error("mysqld has not answered for too long, but counts as alive")
	}
	if err := member.loopRunning(later); err != nil {
		t.Errorf("the loop has just run: %v", err)
	}
	if err := member.loopRunning(later.Add(stuckAfter + time.Second)); err == nil {
		t.Error("the loop makes no progress, but the probe succeeds")
	}
	if err := member.alive(later.Add(stuckAfter)); err != nil {
		t.Errorf("the probe blames mysqld while the agent itself makes no progress: %v", err)
	}
}

func TestALongRecoveryIsNotTakenForAHang(t *testing.T) {
	t.Parallel()
	member := newAgent(t, newLayout(t), memberState())
	observed := someObservation()
	local := member.localView(observed)
	member.publish(observed, local, replication.NextStep(local), followed{})
	_, err := member.look(t.Context())
	if err == nil {
		t.Fatal("there is no mysqld, but it answered")
	}
	member.unanswered(err, followed{})
	later := time.Now().Add(hungAfter + time.Minute)
	member.mu.Lock()
	member.looked = later
	member.mu.Unlock()
	if err := member.alive(later); err != nil {
		t.Errorf("mysqld does not listen, because it recovers or stops, but kubelet would kill it: %v", err)
	}
	if err := member.started(); err == nil {
		t.Error("mysqld restarts and has not answered, but kubelet would consider it started")
	}
}

func TestClientSpeaksToTheAgent(t *testing.T) {
	t.Parallel()
	s := serve(t)
	operator := NewClient(s.ca.operator(), 5*time.Second)
	target := Target{Address: s.address, Host: memberHost}
	want := assignment(s.agent, 5, "db-1")
	if err := operator.Assign(t.Context(), target, want); err != nil {
		t.Fatal(err)
	}
	status, err := operator.Status(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, status.Assignment); diff != "" {
		t.Errorf("the member follows another assignment (-want +got):\n%s", diff)
	}
	if !status.Held.Equal(want.Record) || status.Origin != replication.OriginMember || status.Boot == "" {
		t.Errorf("the member reports %+v", status)
	}
	err = operator.Assign(t.Context(), target, assignment(s.agent, 4, "db-0"))
	if err == nil || !strings.Contains(err.Error(), "409") || !strings.Contains(err.Error(), "epoch 5") {
		t.Errorf("got %v, want a refusal with the epoch that the member holds", err)
	}
}

// TestAReportIsFreshTheSecondTime: what an operator reads makes the agent look again, unless the agent has just looked.
func TestAReportIsFreshTheSecondTime(t *testing.T) {
	t.Parallel()
	for looked, wakes := range map[time.Duration]bool{0: false, lookEvery: true} {
		t.Run(looked.String(), func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.agent.mu.Lock()
			s.agent.looked = time.Now().Add(-looked)
			if looked == 0 {
				s.agent.looked = time.Now().Add(time.Minute) // a slow machine
			}
			s.agent.mu.Unlock()
			if _, err := NewClient(s.ca.operator(), 5*time.Second).Status(t.Context(), Target{Address: s.address, Host: memberHost}); err != nil {
				t.Fatal(err)
			}
			if woken := len(s.agent.wake) > 0; woken != wakes {
				t.Errorf("the agent has looked %s ago; it looks again: %t", looked, woken)
			}
		})
	}
}

// TestAPrimaryIsAskedToMatch: the agent accepts a request that is meant for its primary, and commits at its next look.
func TestAPrimaryIsAskedToMatch(t *testing.T) {
	t.Parallel()
	s := serve(t)
	operator, target := NewClient(s.ca.operator(), 5*time.Second), Target{Address: s.address, Host: memberHost}
	order := assignment(s.agent, 5, "db-0")
	order.Role = replication.RolePrimary
	if err := operator.Assign(t.Context(), target, order); err != nil {
		t.Fatal(err)
	}
	observed := someObservation()
	observed.Server.SuperReadOnly = false
	local := s.agent.localView(observed)
	s.agent.publish(observed, local, replication.NextStep(local), followed{})
	asked := replication.Matching{Epoch: 5, Primary: "db-0", Boot: order.Boot}
	if err := asked.GTIDs.UnmarshalText([]byte("4e11fa47-71ca-11e1-9e33-c80aa9429562:1-3")); err != nil {
		t.Fatal(err)
	}
	if err := operator.Match(t.Context(), target, asked); err != nil {
		t.Fatal(err)
	}
	if got := s.agent.matching; got == nil || !got.GTIDs.Equal(asked.GTIDs) || got.Boot != order.Boot {
		t.Errorf("the request was %+v, but the agent stored %+v", asked, got)
	}
	asked.Boot = "an earlier one"
	if err := operator.Match(t.Context(), target, asked); err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestClientTrustsNobodyElse(t *testing.T) {
	t.Parallel()
	s := serve(t)
	target := Target{Address: s.address, Host: memberHost}
	if _, err := NewClient(newAuthority(t).operator(), 5*time.Second).Status(t.Context(), target); err == nil {
		t.Error("the client trusts a member of another CA")
	}
	target.Host = "db-9.db-pods.shop.svc"
	if _, err := NewClient(s.ca.operator(), 5*time.Second).Status(t.Context(), target); err == nil {
		t.Error("the client accepts another member's certificate")
	}
}

func TestClientGivesUpOnAnAgentThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	mute, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	_, err = NewClient(newAuthority(t).operator(), 50*time.Millisecond).Status(t.Context(), Target{Address: address, Host: memberHost})
	if err == nil || !strings.Contains(err.Error(), memberHost) {
		t.Errorf("got %v, want an error that names the member", err)
	}
}

func TestRenewedCertificatesAreInForceAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	serial := func() int64 {
		security := s.ca.client("")
		security.ServerName = memberHost
		connection, err := (&tls.Dialer{Config: security}).DialContext(t.Context(), "tcp", net.JoinHostPort(s.address, fmt.Sprint(Port)))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		secure, ok := connection.(*tls.Conn)
		if !ok {
			t.Fatalf("not a TLS connection: %T", connection)
		}
		return secure.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 2 {
		t.Fatalf("the agent presents certificate %d", got)
	}
	if !s.agent.tls.changed() {
		t.Error("an agent that has just started assumes that mysqld uses the current certificate; it may have been renewed while no agent ran")
	}
	s.agent.tls.taken()
	if s.agent.tls.changed() {
		t.Error("mysqld would reload the files that it has just loaded")
	}
	s.ca.install(s.layout, 3, memberHost)
	if got := serial(); got != 3 {
		t.Errorf("the agent still presents certificate %d", got)
	}
	for range 2 {
		if !s.agent.tls.changed() {
			t.Error("the agent does not offer the new certificate until mysqld has loaded it")
		}
	}
	s.agent.tls.taken()
	if s.agent.tls.changed() {
		t.Error("the agent makes mysqld load the certificate again")
	}
}
