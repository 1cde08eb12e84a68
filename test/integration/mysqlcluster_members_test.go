package integration

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// network is where the simulated members of a namespace meet. A member is the agent's protocol in front of a mysqld that exists as a
// few fields only: what it does next is decided by replication.NextStep, as in the real agent.
type network struct {
	mu sync.Mutex
	// running are the members whose Pods run, by their host names.
	running map[string]*simulatedMember
	// cut are the hosts whose agents do not answer the operator, and that no primary hears.
	cut map[string]bool
	// lonely are the hosts whose leases end soon. asked are those that the operator has asked, and "confirmed" where it has confirmed one.
	lonely map[string]bool
	asked  []string
	// barred are the accounts that no client can log in to, by mysqld's version.
	barred map[string]replication.Accounts
	// alarmsArrive is what all members report. open counts the connections that the operators keep.
	alarmsArrive bool
	open         int
}

// memberVolume is what outlives a member's Pod.
type memberVolume struct {
	uuid string
	// version is that of the mysqld that has opened it last.
	version  string
	origin   replication.Origin
	held     replication.Record
	heldRole replication.Role
	last     *replication.Assignment
	executed replication.GTIDSet
	// hollow are transactions of its own that hold nothing.
	hollow  replication.GTIDSet
	channel replication.Channel
	// lacking are tables that it came without the rows of, otherEngines those that its mysqld has and no copy has the rows of; nil for not
	// counted.
	lacking      replication.Tables
	otherEngines *replication.Tables
}

// simulatedMember is a running Pod's mysqld and agent. The network's lock guards all of it.
type simulatedMember struct {
	network *network
	host    string
	volume  *memberVolume

	assignment  *replication.Assignment
	boot        string
	readOnly    bool
	sourceAcks  int
	replicaAcks bool
	pointed     bool
	shortSince  time.Time
	step        replication.Step
	certain     int
	hasNoOthers bool
	// answers is when mysqld answers; the agent does before.
	answers time.Time

	address string
	server  *http.Server
	// mounted is what the member's Pod has of Secret NAME-tls.
	mounted certificates
}

// certificates are what a member's Pod mounts.
type certificates struct{ authority, certificate, key []byte }

// start runs a member's mysqld, of a version, and agent on an address of its own.
func (n *network) start(host, version string, volume *memberVolume, from certificates, starting time.Duration) (*simulatedMember, error) {
	if _, err := from.server(); err != nil {
		return nil, err
	}
	listener, address, err := listenAlone()
	if err != nil {
		return nil, err
	}
	m := &simulatedMember{network: n, host: host, volume: volume, boot: rand.Text(), readOnly: true, address: address, mounted: from, answers: time.Now().Add(starting)}
	// As the agent does, it reads its files again for each connection.
	security := &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		return m.mounted.server()
	}}
	m.server = &http.Server{Handler: m.routes(), TLSConfig: security, ReadHeaderTimeout: time.Second, IdleTimeout: time.Hour, ConnState: n.count}
	n.mu.Lock()
	// The member before it, which has the same volume, may just be answering a request.
	if volume.origin == "" {
		volume.origin = replication.OriginFresh
	}
	volume.version = version
	volume.channel.IO, volume.channel.SQL, volume.channel.AckActive = "No", "No", false
	n.running[host] = m
	n.mu.Unlock()
	go func() { _ = m.server.ServeTLS(listener, "", "") }() // ends with the Pod
	return m, nil
}

// stop ends the member as a killed Pod does.
func (m *simulatedMember) stop() {
	_ = m.server.Close()
	m.network.mu.Lock()
	defer m.network.mu.Unlock()
	if m.network.running[m.host] == m {
		delete(m.network.running, m.host)
	}
}

// count counts the open connections.
func (n *network) count(_ net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch state {
	case http.StateNew:
		n.open++
	case http.StateClosed, http.StateHijacked:
		n.open--
	case http.StateActive, http.StateIdle:
	}
}

// at returns the member that runs at an address; nil if there is none. The caller must hold the lock.
func (n *network) at(address string) *simulatedMember {
	for _, m := range n.running {
		if m.address == address {
			return m
		}
	}
	return nil
}

// remount gives the members of a cluster what is in Secret NAME-tls by now, as kubelet does after a while.
func (n *network) remount(cluster string, now certificates) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for host, member := range n.running {
		if strings.Contains(host, "."+cluster+"-pods.") {
			member.mounted = now
		}
	}
}

// listenAlone finds a loopback address where no process listens on the agents' port yet: Linux answers for all of 127.0.0.0/8.
func listenAlone() (net.Listener, string, error) {
	for {
		address := fmt.Sprintf("127.%d.%d.%d", 1+mathrand.IntN(250), mathrand.IntN(250), 1+mathrand.IntN(250))
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(agent.Port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		return listener, address, err
	}
}

func (c certificates) server() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(c.certificate, c.key)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(c.authority) {
		return nil, errors.New("the member's CA holds no certificate")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: authorities, ClientAuth: tls.VerifyClientCertIfGiven}, nil
}

// routes are the part of the agent's that the operator uses.
func (m *simulatedMember) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		m.noteAsked(m.host)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(m.status())
	})
	mux.HandleFunc("PUT /v1/assignment", func(w http.ResponseWriter, r *http.Request) {
		var next replication.Assignment
		if err := json.NewDecoder(r.Body).Decode(&next); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if !m.assign(next) {
			http.Error(w, "stale", http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("PUT /v1/hollow", m.match)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := len(r.TLS.VerifiedChains) > 0 && r.TLS.PeerCertificates[0].Subject.CommonName == agent.OperatorName
		switch {
		case !known:
			http.Error(w, "only the operator may ask this", http.StatusUnauthorized)
		case m.isCut():
			panic(http.ErrAbortHandler)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func (m *simulatedMember) noteAsked(what string) {
	m.network.mu.Lock()
	defer m.network.mu.Unlock()
	m.network.asked = append(m.network.asked, what)
}

func (m *simulatedMember) isCut() bool {
	m.network.mu.Lock()
	defer m.network.mu.Unlock()
	return m.network.cut[m.host]
}

// assign takes an assignment, or refuses one that contradicts what the member has seen.
func (m *simulatedMember) assign(next replication.Assignment) bool {
	m.network.mu.Lock()
	defer m.network.mu.Unlock()
	if replication.Accept(m.volume.held, m.volume.last, m.boot, next) != nil {
		return false
	}
	if next.ConfirmedAt > 0 {
		m.network.asked = append(m.network.asked, "confirmed")
	}
	next.ConfirmedAt = 0
	m.volume.held, m.volume.heldRole, m.volume.last, m.assignment = next.Record, next.Role, &next, &next
	return true
}

// status lets the member do all that it has to do, and says where it stands.
func (m *simulatedMember) status() replication.Status {
	m.network.mu.Lock()
	defer m.network.mu.Unlock()
	under := replication.Version{}
	if m.assignment != nil {
		under = m.assignment.Record.Version()
	}
	if time.Now().Before(m.answers) {
		return replication.Status{
			Closed: &under,
			State:  replication.StateStarting, Origin: m.volume.origin, Held: m.volume.held, HeldRole: m.volume.heldRole, Last: m.volume.last,
			Assignment: m.assignment, Boot: m.boot, Protocol: replication.Protocol, TLS: agent.TLSDigest(m.mounted.authority, m.mounted.certificate),
		}
	}
	m.settle()
	server, clients := m.observe(), m.ackClients()
	if clients >= m.sourceAcks {
		m.shortSince = time.Time{}
	} else if m.shortSince.IsZero() {
		m.shortSince = time.Now()
	}
	status := replication.Status{
		State: m.step.State, Message: m.step.Message, NeedsCopy: m.step.NeedsCopy, Origin: m.volume.origin,
		Held: m.volume.held, HeldRole: m.volume.heldRole, Last: m.volume.last, Assignment: m.assignment, Boot: m.boot, Protocol: replication.Protocol,
		ServerUUID: server.ServerUUID, Version: m.volume.version, Hollow: m.step.Hollow, Executed: server.Executed, Received: server.Executed.Union(server.Channel.Retrieved),
		Writable: !server.SuperReadOnly, AcksEnforced: m.certain, AckClients: clients, HasNoOthers: m.hasNoOthers, AlarmsArrive: m.network.alarmsArrive,
		Acknowledging: server.ReplicaAcks && server.Channel.AckActive, LagSeconds: server.Channel.LagSeconds,
		TLS: agent.TLSDigest(m.mounted.authority, m.mounted.certificate),
	}
	if m.assignment != nil {
		status.ObservedUnder, status.Silent = under, m.assignment.Silent
	}
	if server.SuperReadOnly {
		status.Closed = &under
	}
	if m.assignment != nil && m.assignment.Lease > 0 {
		isLonely := m.network.lonely[m.host]
		status.Clock, status.Lease = time.Hour, &replication.Lease{Needs: m.assignment.Lease, Lasts: m.assignment.LeaseLasts, Left: m.assignment.LeaseLasts, Ends: isLonely, IsHeard: !isLonely, Unheard: m.unheard()}
	}
	lacking, barred := m.volume.lacking, m.network.barred[m.volume.version]
	status.TablesWithoutRows, status.LockedOut = &lacking, &barred
	if status.State == replication.StateWriting {
		status.OtherEngines = m.volume.otherEngines
	}
	if !m.shortSince.IsZero() {
		status.AcksShortSeconds = int(time.Since(m.shortSince).Seconds())
	}
	return status
}

// ready says what the readiness probe says.
func (m *simulatedMember) ready() bool { return m.status().Serves() }

// settle takes step after step until there is none; a member never needs more than a dozen.
func (m *simulatedMember) settle() {
	for range 12 {
		m.receive()
		local := replication.Observed{Assignment: m.assignment, Boot: m.boot, Origin: m.volume.origin, Server: m.observe(), CredentialsCurrent: m.pointed, TablesWithoutRows: m.volume.lacking}
		if replication.NeedsSource(local) {
			local.Source = m.lookAtSource()
		}
		local.Hollow = replication.ToInspect(local).Both(m.volume.hollow)
		m.step = replication.NextStep(local)
		m.certain, m.hasNoOthers = m.step.CertainAcks(local), local.HasNoOthers()
		if m.step.Verb == replication.VerbNone {
			return
		}
		m.act(m.step.Verb)
	}
}

func (m *simulatedMember) observe() replication.Server {
	return replication.Server{
		SuperReadOnly: m.readOnly, ServerUUID: m.volume.uuid, Executed: m.volume.executed,
		SourceAcks: m.sourceAcks, ReplicaAcks: m.replicaAcks, Channel: m.volume.channel,
	}
}

// receive is what the replication threads do meanwhile: they have and apply everything at once.
func (m *simulatedMember) receive() {
	channel := &m.volume.channel
	if channel.IO != "Yes" && channel.IO != "Connecting" {
		return
	}
	source := m.network.at(channel.SourceHost)
	if source == nil || !source.allows(m) {
		channel.IO, channel.AckActive = "Connecting", false
		return
	}
	if channel.IO == "Connecting" {
		channel.IO, channel.AckActive = "Yes", m.replicaAcks
	}
	channel.Retrieved = channel.Retrieved.Union(source.volume.executed)
	m.volume.executed = m.volume.executed.Union(channel.Retrieved)
}

// allows reports whether the primary lets a member follow it.
func (m *simulatedMember) allows(other *simulatedMember) bool {
	name, _, _ := strings.Cut(other.host, ".")
	return !m.readOnly && m.assignment != nil && slices.Contains(m.assignment.Receivers(), name)
}

func (m *simulatedMember) lookAtSource() *replication.Source {
	source := m.network.at(m.assignment.SourceAddress)
	if source == nil || source.host != m.assignment.SourceHost || source.readOnly {
		return &replication.Source{Err: "connection refused"}
	}
	return &replication.Source{ServerUUID: source.volume.uuid, Executed: source.volume.executed}
}

func (m *simulatedMember) ackClients() int {
	count := 0
	for _, other := range m.network.running {
		if other.volume.channel.SourceHost == m.address && other.volume.channel.IO == "Yes" && other.volume.channel.AckActive {
			count++
		}
	}
	return count
}

// unheard are the replicas in sync that the primary has not heard lately. They may count as connected for longer.
func (m *simulatedMember) unheard() []string {
	var names []string
	for _, name := range m.assignment.Record.ReplicasInSync() {
		for host, isCut := range m.network.cut {
			if isCut && strings.HasPrefix(host, name+".") {
				names = append(names, name)
			}
		}
	}
	return names
}

// act is what mysqld does on a verb.
func (m *simulatedMember) act(verb replication.Verb) {
	channel := &m.volume.channel
	switch verb {
	case replication.VerbNone, replication.VerbApplyReceived, replication.VerbSetAside: // it has nothing that its successor lacks
	case replication.VerbSetReadOnly:
		m.readOnly = true
	case replication.VerbStopReplica:
		channel.IO, channel.SQL, channel.AckActive = "No", "No", false
	case replication.VerbStopReceiver:
		channel.IO, channel.AckActive = "No", false
	case replication.VerbForgetSource:
		*channel = replication.Channel{}
	case replication.VerbEnforceAcks:
		m.sourceAcks = m.assignment.Acks
	case replication.VerbStopEnforcingAcks:
		m.sourceAcks = 0
	case replication.VerbStartAcknowledging:
		m.replicaAcks = true
	case replication.VerbStopAcknowledging:
		m.replicaAcks, channel.AckActive = false, false
	case replication.VerbAcceptWrites, replication.VerbReopen:
		m.acceptWrites()
	case replication.VerbClone:
		m.copySource()
	case replication.VerbPointToSource:
		*channel = replication.Channel{Configured: true, SourceHost: m.assignment.SourceAddress, SourcePort: m.assignment.SourcePort}
		m.pointed, m.replicaAcks = true, m.replicaAcks || m.assignment.Acknowledge
		m.startReplica()
	case replication.VerbTurnToSource:
		channel.SourceHost, channel.SourcePort, channel.IO, channel.AckActive = m.assignment.SourceAddress, m.assignment.SourcePort, "Connecting", false
		m.pointed = true
	case replication.VerbStartReplica, replication.VerbRestartReceiver:
		m.startReplica()
	}
}

func (m *simulatedMember) startReplica() {
	lag, channel := int64(0), &m.volume.channel
	channel.IO, channel.SQL, channel.AckActive, channel.LagSeconds = "Yes", "Yes", m.replicaAcks, &lag
}

// acceptWrites lets clients in, of which the first comes at once.
func (m *simulatedMember) acceptWrites() {
	m.readOnly = false
	m.volume.origin = replication.OriginMember
	written, err := replication.ParseGTIDSet(m.volume.uuid + ":1-3")
	if err == nil {
		m.volume.executed = m.volume.executed.Union(written)
	}
}

// copySource is CLONE: the primary's data, and a new start.
func (m *simulatedMember) copySource() {
	source, reachable := m.network.running[m.assignment.SourceHost]
	if !reachable {
		return
	}
	m.volume.origin, m.volume.executed, m.volume.channel = replication.OriginMember, source.volume.executed, replication.Channel{}
	m.boot, m.readOnly, m.sourceAcks, m.replicaAcks, m.pointed = rand.Text(), true, 0, false, false
}
