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
	// servicePort is the Service's port.
	servicePort = 443
	// routePoll is the pause between attempts to connect to a Service that does not route to a Pod yet.
	routePoll = 100 * time.Millisecond
)

// announce makes this replica reachable: it labels its Pod, makes the Service select such Pods, and waits until the nodes route to them.
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

// awaitRoute waits until the Service routes to a Pod that converts, as seen from this node. A new Service takes seconds to do so. If a
// definition names a webhook that API servers cannot reach, every request that needs a conversion fails. The wait is bounded, and its end
// is not a failure: a network policy may block connections of this Pod and allow those of API servers.
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
				s.config.Log.Info("this Pod cannot connect to the conversion webhook's Service yet; continuing",
					"namespace", s.config.Namespace, "name", s.config.Name, "address", address, "error", err.Error())
			}
			return ctx.Err()
		case <-time.After(routePoll):
		}
	}
}

// retire removes the label, if there is one, and waits until the nodes have updated their routes. API servers keep connections, so every
// answer ends its own.
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
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	<-timer.C
	return nil
}

func (s *Server) labelPod(ctx context.Context, labels map[string]string) error {
	pod := applycore.Pod(s.config.Pod, s.config.Namespace).WithLabels(labels)
	if _, err := s.core.Pods(s.config.Namespace).Apply(ctx, pod, s.applying()); err != nil {
		return fmt.Errorf("label the operator's own Pod %s/%s as one that converts: %w", s.config.Namespace, s.config.Pod, err)
	}
	return nil
}

// applying returns options that take over fields: an earlier program in the same Pod had the same field manager, and a value of another
// manager is a mistake.
func (s *Server) applying() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: s.config.fieldManager(), Force: true}
}

// applyService makes the Service select the Pods that convert the same versions as this program. It does not change a Service that selects
// a higher version, which belongs to a newer operator, nor one that is not ours.
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
	return s.serviceFault("apply", fmt.Errorf("other clients changed it %d times meanwhile: look for another program that manages it", maxRounds))
}

func (s *Server) serviceFault(verb string, err error) error {
	return fmt.Errorf("%s Service %s/%s of the conversion webhook: %w", verb, s.config.Namespace, s.config.Name, err)
}

// decideService reports whether to apply the Service over the one that was found; nil if there is none.
func (c Config) decideService(found *corev1.Service) (apply bool, err error) {
	if found == nil {
		return true, nil
	}
	if found.Labels[labelOwner] != c.Owner {
		return false, fmt.Errorf("use Service %s/%s for the conversion webhook: it does not belong to this operator, because it does not have the label %s=%s: delete or rename it", c.Namespace, c.Name, labelOwner, c.Owner)
	}
	name, _ := c.label()
	selected, err := strconv.Atoi(found.Spec.Selector[name])
	if err != nil || selected < c.Version {
		return true, nil //nolint:nilerr // the operator did not write a selector that is not a number, and replaces it
	}
	ports := found.Spec.Ports
	fits := len(ports) == 1 && ports[0].Port == servicePort && ports[0].TargetPort.IntValue() == c.port() && found.Spec.PublishNotReadyAddresses && len(found.Spec.Selector) == 1
	return selected == c.Version && !fits, nil
}

// service returns the Service to apply. Pods that are not ready get requests, too: an operator may need to list objects, and so
// conversions, to become ready. Only the label decides which Pods convert.
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

// port returns the port that the webhook listens on.
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
