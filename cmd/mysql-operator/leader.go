package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/mysql-operator/mysql-operator/listen"
)

// leaderPod asks the leading operator, which runs in another Pod, whether it runs (reconcile.Config.Ask): its health endpoint must answer.
// All operators of a Deployment serve that on the same port.
type leaderPod struct {
	pods v1.PodInterface
	port string
	http http.Client
	// identity and address are those of the leader that it asked last, and failures how often in sequence that one did not answer.
	identity, address string
	failures          int
}

// asksLeader returns how this process asks the leader. It is nil if that is impossible: the process does not know its own Pod, or serves no
// health.
func (s self) asksLeader(ctx context.Context, c connection, healthAddress string) (ask func(ctx context.Context, identity string) error, err error) {
	if s.identity == "" || healthAddress == "" {
		return ask, nil
	}
	_, named, err := net.SplitHostPort(healthAddress)
	if err != nil {
		return nil, fmt.Errorf("read the port of --health-address=%s: %w", healthAddress, err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", named)
	if err != nil {
		return nil, fmt.Errorf("read the port of --health-address=%s: %w", healthAddress, err)
	}
	client, err := v1.NewForConfig(c.rest)
	if err != nil {
		return nil, fmt.Errorf("make a client for Pods: %w", err)
	}
	leader := leaderPod{pods: client.Pods(c.namespace), port: strconv.Itoa(port), http: http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: listen.MaxHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return leader.ask, nil
}

// lookAgain is after how many failures in sequence to look at the leader's Pod again. Its address changes if its sandbox is made again.
const lookAgain = 10

// ask returns an error if the leader with this identity does not answer in time.
func (l *leaderPod) ask(ctx context.Context, identity string) error {
	if identity != l.identity || l.failures%lookAgain == lookAgain-1 {
		address, err := l.find(ctx, identity)
		if err != nil {
			return err
		}
		l.identity, l.address, l.failures = identity, address, 0
	}
	err := l.askThere(ctx, identity)
	if err != nil {
		l.failures++
		return err
	}
	l.failures = 0
	return nil
}

func (l *leaderPod) askThere(ctx context.Context, identity string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.address+"/healthz", http.NoBody)
	if err != nil {
		return fmt.Errorf("ask the leader %s: %w", identity, err)
	}
	answer, err := l.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask the leader %s: %w", identity, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the leader %s: it answered %s", identity, answer.Status)
	}
	return nil
}

// find returns the address of the leader's Pod.
func (l *leaderPod) find(ctx context.Context, identity string) (string, error) {
	name, uid, _ := strings.Cut(identity, "_")
	pod, err := l.pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("find the leader %s: %w", identity, err)
	}
	if string(pod.UID) != uid || pod.Status.PodIP == "" {
		return "", fmt.Errorf("find the leader %s: no Pod of this identity has an address", identity)
	}
	return net.JoinHostPort(pod.Status.PodIP, l.port), nil
}
