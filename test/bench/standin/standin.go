// Package standin has programs stand in for members of MySQLClusters where there is no node to run them.
package standin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/schema"
)

const (
	labelInstance = "app.kubernetes.io/instance"
	managedByUs   = "app.kubernetes.io/managed-by=mysql-operator,app.kubernetes.io/name=mysql"
	address       = "127.0.0.1"
	version       = "9.7.4"
)

func core(resource string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Version: "v1", Resource: resource}
}

// Members answer for Pods that no kubelet runs. They do at once what the operator assigns, over TLS with the cluster's own certificate, as
// agents do. So the operator holds and does the same as with that many real clusters at rest. All Pods share one address: the host name in
// the TLS handshake selects the member.
type Members struct {
	api    dynamic.Interface
	server *http.Server
	ended  chan error

	mu       sync.Mutex
	members  map[string]*member     // by host
	clusters map[string][]*member   // by cluster
	security map[string]*tls.Config // by cluster
}

// member is one member. It has tested whether its alarms arrive, at this target.
type member struct {
	cluster, name string
	assignment    *replication.Assignment
	tested        agent.AlarmTarget
	testedAt      time.Time
}

// testEvery is about how often members test that.
const testEvery = 4 * time.Minute

// Start begins to answer; Stop ends it.
func Start(ctx context.Context, api dynamic.Interface) (*Members, error) {
	s := &Members{api: api, ended: make(chan error, 1), members: map[string]*member{}, clusters: map[string][]*member{}, security: map[string]*tls.Config{}}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(agent.Port)))
	if err != nil {
		return nil, fmt.Errorf("stand in for members: %w: their port is fixed, so nothing else may use it on this address", err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/status", s.status)
	routes.HandleFunc("PUT /v1/assignment", s.assign)
	s.server = &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.certificate}}
	go func() { s.ended <- s.server.ServeTLS(listener, "", "") }()
	return s, nil
}

// Stop ends them.
func (s *Members) Stop() error {
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		return errors.Join(err, ended)
	}
	return err
}

// Tend makes each Pod that has none a stand-in, and reports it as running, as its kubelet would.
func (s *Members) Tend(ctx context.Context, namespace string) error {
	list, err := s.api.Resource(core("pods")).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: managedByUs})
	if err != nil {
		return fmt.Errorf("look for Pods: %w", err)
	}
	for i := range list.Items {
		var pod corev1.Pod
		if err := schema.Decode(&list.Items[i], &pod); err != nil {
			return err
		}
		if pod.Status.PodIP != "" {
			continue
		}
		if err := s.Run(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// Run makes one Pod a stand-in, and reports it as running.
func (s *Members) Run(ctx context.Context, pod corev1.Pod) error {
	if err := s.add(ctx, pod); err != nil {
		return err
	}
	return s.reportRunning(ctx, pod)
}

func (s *Members) add(ctx context.Context, pod corev1.Pod) error {
	cluster := pod.Labels[labelInstance]
	security, err := s.securityOf(ctx, pod.Namespace, cluster)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.security[cluster] = security
	made := &member{cluster: cluster, name: pod.Name}
	s.members[fmt.Sprintf("%s.%s.%s.svc", pod.Name, pod.Spec.Subdomain, pod.Namespace)] = made
	s.clusters[cluster] = append(s.clusters[cluster], made)
	return nil
}

// securityOf reads a cluster's certificate and its CA, once.
func (s *Members) securityOf(ctx context.Context, namespace, cluster string) (*tls.Config, error) {
	s.mu.Lock()
	known := s.security[cluster]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	object, err := s.api.Resource(core("secrets")).Namespace(namespace).Get(ctx, cluster+"-tls", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", cluster, err)
	}
	var secret corev1.Secret
	if err := schema.Decode(object, &secret); err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", cluster, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, fmt.Errorf("read the CA of %s: its Secret has no certificate", cluster)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: authorities, Certificates: []tls.Certificate{certificate}}, nil
}

func (s *Members) reportRunning(ctx context.Context, pod corev1.Pod) error {
	now := metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	running := true
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: &running,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	for _, container := range pod.Spec.InitContainers {
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
		if container.RestartPolicy != nil { // a sidecar
			state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{Name: container.Name, Image: container.Image, Ready: true, State: state})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	if _, err := s.api.Resource(core("pods")).Namespace(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("report Pod %s as running: %w", pod.Name, err)
	}
	return nil
}

func (s *Members) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member, found := s.members[hello.ServerName]
	if !found {
		return nil, fmt.Errorf("no member is called %q", hello.ServerName)
	}
	return &s.security[member.cluster].Certificates[0], nil
}

func (s *Members) assign(answer http.ResponseWriter, request *http.Request) {
	var assignment replication.Assignment
	if err := json.NewDecoder(request.Body).Decode(&assignment); err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[request.TLS.ServerName].assignment = &assignment
	answer.WriteHeader(http.StatusNoContent)
}

func (s *Members) status(answer http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	member, by := s.members[request.TLS.ServerName], agent.AlarmTargetOf(request)
	if by != member.tested || time.Since(member.testedAt) > testEvery {
		member.testedAt = time.Now()
		go s.test(context.WithoutCancel(request.Context()), member, by)
	}
	acknowledging := 0
	for _, other := range s.clusters[member.cluster] {
		if other.assignment != nil && other.assignment.Acknowledge {
			acknowledging++
		}
	}
	answer.Header().Set("Content-Type", "application/json")
	status := member.status(acknowledging)
	status.AlarmsArrive = by != (agent.AlarmTarget{}) && by == member.tested
	_ = json.NewEncoder(answer).Encode(status) // the operator is gone when this fails
}

// test tests whether a member's alarms arrive, as its agent would. Until it knows, what it found before holds.
func (s *Members) test(ctx context.Context, one *member, by agent.AlarmTarget) {
	s.mu.Lock()
	security := s.security[one.cluster]
	s.mu.Unlock()
	if by == (agent.AlarmTarget{}) || by.Send(ctx, security, agent.AlarmTestPath) != nil {
		by = agent.AlarmTarget{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one.tested = by
}

// status is what an agent says whose mysqld has done all that it was assigned. acknowledging is how many of the cluster's replicas do.
func (m *member) status(acknowledging int) replication.Status {
	executed, err := replication.ParseGTIDSet("00000000-0000-4000-8000-000000000000:1-3")
	if err != nil {
		executed = replication.GTIDSet{}
	}
	status := replication.Status{Protocol: replication.Protocol, Boot: "boot-of-" + m.name, Version: version, Executed: executed, Received: executed}
	if m.assignment == nil {
		status.State, status.Origin, status.Message = replication.StateWaiting, replication.OriginFresh, "waits for the operator to assign a role"
		return status
	}
	given := *m.assignment
	status.ObservedUnder = given.Record.Version()
	status.Last, status.Assignment, status.Held, status.HeldRole, status.Origin = &given, &given, given.Record, given.Role, replication.OriginMember
	if given.Role == replication.RolePrimary {
		status.State, status.Message = replication.StateWriting, "takes writes"
		status.Writable, status.AcksEnforced, status.AckClients, status.Silent = true, given.Acks, acknowledging, given.Silent
		if given.Lease > 0 {
			status.Lease = &replication.Lease{Needs: given.Lease, Lasts: given.LeaseLasts, Left: given.LeaseLasts, IsHeard: true}
		}
		return status
	}
	lag := int64(0)
	status.State, status.Message, status.LagSeconds, status.HasNoOthers = replication.StateReplicating, "follows "+given.Record.Primary, &lag, true
	status.Acknowledging = given.Acknowledge
	return status
}
