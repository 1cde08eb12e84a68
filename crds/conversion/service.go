package conversion

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	// servicePort is the Service's.
	servicePort = 443
	// routePoll is how often a Service is tried that does not lead anywhere yet.
	routePoll = 100 * time.Millisecond
)

// announce makes this replica reachable: first its Pod gets the label, then the Service selects such Pods, then the nodes hear of it.
func (s *Server) announce(ctx context.Context) error {
	if s.config.URL != "" {
		return nil
	}
	name, value := s.config.label()
	if err := s.labelPod(ctx, map[string]string{name: value}); err != nil {
		return err
	}
	if err := s.applyService(ctx); err != nil {
		return err
	}
	return s.awaitRoute(ctx)
}

// awaitRoute waits until the Service leads to a Pod that converts, as far as this node knows: it takes seconds until a new one does, and
// every request that needs a conversion fails where a definition names a webhook that nobody reaches. It is bounded, and no failure,
// because a network policy may keep this Pod from what API servers may do.
func (s *Server) awaitRoute(ctx context.Context) error {
	service, err := s.core.Services(s.config.Namespace).Get(ctx, s.config.Name, metav1.GetOptions{})
	if err != nil {
		return s.serviceFault("read", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(s.held.Load().bundle())
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: trusted, ServerName: s.config.hosts()[0], MinVersion: tls.VersionTLS12}}
	address := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(servicePort))
	waiting, cancel := context.WithTimeout(ctx, s.config.Reach)
	defer cancel()
	for {
		trying, stop := context.WithTimeout(waiting, time.Second)
		connection, err := dialer.DialContext(trying, "tcp", address)
		stop()
		if err == nil {
			return connection.Close()
		}
		select {
		case <-waiting.Done():
			if ctx.Err() == nil {
				s.config.Log.Info("the conversion webhook's Service does not lead here yet, as far as this Pod can see; going on",
					"namespace", s.config.Namespace, "name", s.config.Name, "address", address, "error", err.Error())
			}
			return ctx.Err()
		case <-time.After(routePoll):
		}
	}
}

// retire takes the label off, if there is one, and lets the news spread. API servers keep connections, so every answer ends its own.
func (s *Server) retire(ctx context.Context) error {
	select {
	case <-s.ready:
	default:
		return nil
	}
	s.retiring.Store(true)
	if s.config.URL != "" {
		return nil
	}
	if err := s.labelPod(ctx, nil); err != nil {
		return err
	}
	timer := time.NewTimer(leaving)
	defer timer.Stop()
	<-timer.C
	return nil
}

func (s *Server) labelPod(ctx context.Context, labels map[string]string) error {
	pod := applycore.Pod(s.config.Pod, s.config.Namespace).WithLabels(labels)
	if _, err := s.core.Pods(s.config.Namespace).Apply(ctx, pod, s.applying()); err != nil {
		return fmt.Errorf("label own Pod %s/%s as one that converts: %w", s.config.Namespace, s.config.Pod, err)
	}
	return nil
}

// applying takes fields over: an earlier program in the same Pod had the same field manager, and anybody else's word is a mistake.
func (s *Server) applying() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: s.config.fieldManager(), Force: true}
}

// applyService makes the Service select the Pods that convert what this program does. One that selects a higher version is a newer
// operator's, and left alone; so is one that is not ours.
func (s *Server) applyService(ctx context.Context) error {
	for range maxRounds {
		found, err := s.core.Services(s.config.Namespace).Get(ctx, s.config.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			found, err = nil, nil
		}
		if err != nil {
			return s.serviceFault("read", err)
		}
		apply, err := s.config.decideService(found)
		if err != nil || !apply {
			return err
		}
		_, err = s.core.Services(s.config.Namespace).Apply(ctx, s.config.service(found), s.applying())
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return s.serviceFault("apply", err)
		}
		return nil
	}
	return s.serviceFault("apply", fmt.Errorf("somebody else wrote it %d times meanwhile", maxRounds))
}

func (s *Server) serviceFault(verb string, err error) error {
	return fmt.Errorf("%s Service %s/%s of the conversion webhook: %w", verb, s.config.Namespace, s.config.Name, err)
}

// decideService says whether to apply the Service over what is found, nil if there is none.
func (c Config) decideService(found *corev1.Service) (apply bool, err error) {
	if found == nil {
		return true, nil
	}
	if found.Labels[labelOwner] != c.Owner {
		return false, fmt.Errorf("use Service %s/%s for the conversion webhook: it is not ours, because it lacks the label %s=%s: delete or rename it", c.Namespace, c.Name, labelOwner, c.Owner)
	}
	name, _ := c.label()
	selected, err := strconv.Atoi(found.Spec.Selector[name])
	if err != nil || selected < c.Version {
		return true, nil //nolint:nilerr // a selector that is no number is none of ours, and replaced
	}
	ports := found.Spec.Ports
	fits := len(ports) == 1 && ports[0].Port == servicePort && ports[0].TargetPort.IntValue() == c.port() && found.Spec.PublishNotReadyAddresses && len(found.Spec.Selector) == 1
	return selected == c.Version && !fits, nil
}

// service is what is said about the Service. Pods that are not ready get conversions too: an operator may need to list objects, and so
// conversions, to become ready. The label alone says who converts.
func (c Config) service(found *corev1.Service) *applycore.ServiceApplyConfiguration {
	name, value := c.label()
	port := applycore.ServicePort().WithName("conversion").WithProtocol(corev1.ProtocolTCP).WithPort(servicePort).WithTargetPort(intstr.FromInt(c.port()))
	wanted := applycore.Service(c.Name, c.Namespace).WithLabels(map[string]string{labelOwner: c.Owner}).
		WithSpec(applycore.ServiceSpec().WithSelector(map[string]string{name: value}).WithPublishNotReadyAddresses(true).WithPorts(port))
	if found != nil {
		wanted = wanted.WithResourceVersion(found.ResourceVersion).WithUID(found.UID)
	}
	return wanted
}

// port is where the webhook listens.
func (c Config) port() int {
	address := c.Address
	if c.Listener != nil {
		address = c.Listener.Addr().String()
	}
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0 // listening failed before
	}
	port, err := net.LookupPort("tcp", text) //nolint:noctx // numbers need no look-up
	if err != nil {
		return 0
	}
	return port
}
