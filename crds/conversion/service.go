package conversion

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// servicePort is the Service's.
const servicePort = 443

// announce makes this replica reachable: first its Pod gets the label, then the Service selects such Pods.
func (s *Server) announce(ctx context.Context) error {
	if s.config.URL != "" {
		return nil
	}
	name, value := s.config.label()
	if err := s.labelPod(ctx, map[string]any{name: value}); err != nil {
		return err
	}
	return s.applyService(ctx)
}

// retire takes the label off, if there is one, and lets the news spread.
func (s *Server) retire(ctx context.Context) error {
	select {
	case <-s.ready:
	default:
		return nil
	}
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

func (s *Server) labelPod(ctx context.Context, labels map[string]any) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": s.config.Pod, "namespace": s.config.Namespace, "labels": labels},
	})
	if err == nil {
		// Older programs in the same Pod (a changed image) wrote the label by the same field manager; anybody else's is a mistake.
		_, err = s.core.Pods(s.config.Namespace).Patch(ctx, s.config.Pod, types.ApplyPatchType, body, s.applying())
	}
	if err != nil {
		return fmt.Errorf("label own Pod %s/%s as one that converts: %w", s.config.Namespace, s.config.Pod, err)
	}
	return nil
}

func (s *Server) applying() metav1.PatchOptions {
	force := true
	return metav1.PatchOptions{FieldManager: s.config.fieldManager(), Force: &force}
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
		body, err := json.Marshal(s.config.service(found))
		if err != nil {
			return s.serviceFault("apply", err)
		}
		_, err = s.core.Services(s.config.Namespace).Patch(ctx, s.config.Name, types.ApplyPatchType, body, s.applying())
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
func (c Config) service(found *corev1.Service) map[string]any {
	name, value := c.label()
	metadata := map[string]any{"name": c.Name, "namespace": c.Namespace, "labels": map[string]any{labelOwner: c.Owner}}
	if found != nil {
		metadata["resourceVersion"], metadata["uid"] = found.ResourceVersion, found.UID
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": metadata,
		"spec": map[string]any{
			"selector":                 map[string]any{name: value},
			"publishNotReadyAddresses": true,
			"ports":                    []any{map[string]any{"name": "conversion", "protocol": "TCP", "port": servicePort, "targetPort": c.port()}},
		},
	}
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
