package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

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
		Timeout:       askTimeout,
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: listen.MaxHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return leader.ask, nil
}

const (
	// lookAgain is after how many failures in sequence to look at the leader's Pod again. Its address changes if its sandbox is made again.
	lookAgain = 10
	// askTimeout leaves time for that: the engine asks four times in each retry period of two seconds.
	askTimeout = 350 * time.Millisecond
)

// ask returns an error if the leader with this identity does not answer in time.
func (l *leaderPod) ask(ctx context.Context, identity string) error {
	if identity != l.identity {
		l.identity, l.address, l.failures = identity, "", 0
	}
	err := l.askThere(ctx)
	if err != nil && l.failures%lookAgain == 0 {
		if err = l.find(ctx); err == nil {
			err = l.askThere(ctx)
		}
	}
	if err != nil {
		l.failures++
		return fmt.Errorf("ask the leader %s: %w", identity, err)
	}
	l.failures = 0
	return nil
}

func (l *leaderPod) askThere(ctx context.Context) error {
	if l.address == "" {
		return errors.New("its address is not known")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.address+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := l.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", answer.Status)
	}
	return nil
}

// find finds the address of the leader's Pod.
func (l *leaderPod) find(ctx context.Context) error {
	name, uid, _ := strings.Cut(l.identity, "_")
	pod, err := l.pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if string(pod.UID) != uid || pod.Status.PodIP == "" {
		return errors.New("no Pod of this identity has an address")
	}
	l.address = net.JoinHostPort(pod.Status.PodIP, l.port)
	return nil
}
