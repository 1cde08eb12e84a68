package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// An alarm is a request of a member to the operator: look at this cluster now. Otherwise the operator looks at a cluster at rest every ten
// seconds. A member sends an alarm if its report differs, in what must not wait (replication.News), from the one that an operator has read
// last. With each look, the operator says where it takes alarms. A member whose alarms do not arrive waits for the operator's next look.

const (
	// AlarmPath is where the operator takes alarms. They have no body.
	AlarmPath = "/v1/alarm"
	// alarmHeader of a request for the status has the name under which the operator takes alarms of this cluster, and the port. The
	// address is that of the request.
	alarmHeader = "Mysql-Operator-Alarms"
	// alarmZone ends the names under which the operator takes alarms.
	alarmZone = ".alarms.mysql-operator"

	// alarmEvery is the time between two alarms. If one does not arrive, it is about alarmAgain, and twice as long each further time, up to
	// alarmLimit.
	alarmEvery = 100 * time.Millisecond
	alarmAgain = 2 * time.Second
	alarmLimit = 10 * time.Second
	// alarmTimeout bounds one alarm.
	alarmTimeout = 2 * time.Second
)

// AlarmHost returns the name under which the operator takes the alarms of a cluster. It tells the operator which CA must have signed the
// member's certificate. No DNS server knows it.
func AlarmHost(namespace, cluster string) string { return cluster + "." + namespace + alarmZone }

// ClusterOfAlarms parses such a name. ok is false for any other name.
func ClusterOfAlarms(host string) (namespace, cluster string, ok bool) {
	name, isAlarm := strings.CutSuffix(host, alarmZone)
	cluster, namespace, isPair := strings.Cut(name, ".")
	return namespace, cluster, isAlarm && isPair
}

// alarmTarget is where an operator takes alarms: its name, and its address with the port. The zero value takes none.
type alarmTarget struct{ host, address string }

// alarmTargetOf returns where the operator that sends a request takes alarms.
func alarmTargetOf(r *http.Request) alarmTarget {
	host, port, err := net.SplitHostPort(r.Header.Get(alarmHeader))
	address, _, failed := net.SplitHostPort(r.RemoteAddr)
	if err != nil || failed != nil {
		return alarmTarget{}
	}
	return alarmTarget{host: host, address: net.JoinHostPort(address, port)}
}

// send sends an alarm.
func (t alarmTarget) send(ctx context.Context, security *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, alarmTimeout)
	defer cancel()
	client := NewPodClient(security, t.host)
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+t.address+AlarmPath, http.NoBody)
	if err == nil {
		_, err = Ask(client, request, 0)
	}
	if err != nil {
		return fmt.Errorf("send an alarm to the operator at %s: %w", t.address, err)
	}
	return nil
}

// alarm is one about some news.
type alarm struct {
	to   alarmTarget
	news replication.News
	// looks is how often operators had looked when it was due.
	looks int
}

// alarms is what the agent knows about alarms. The zero value knows no operator.
type alarms struct {
	mu sync.Mutex
	to alarmTarget
	// read is what an operator has read last, and looks counts how often one has. sent is what the last alarm since then was about that
	// arrived, if hasArrived.
	read, sent replication.News
	looks      int
	hasArrived bool
	// next is when the next alarm may be sent. failures counts those in a row that did not arrive.
	next     time.Time
	failures int
	// arrived and failed count all alarms.
	arrived, failed int
}

// looked records that an operator has read a report.
func (s *alarms) looked(by alarmTarget, read replication.News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if by != s.to {
		s.next = time.Time{}
	}
	s.to, s.read, s.hasArrived, s.failures = by, read, false, 0
}

// due returns an alarm about this news and in how long to send it; isDue is false if none is needed.
func (s *alarms) due(now time.Time, news replication.News) (next alarm, after time.Duration, isDue bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == (alarmTarget{}) || news == s.read || s.hasArrived && news == s.sent {
		return alarm{}, 0, false
	}
	return alarm{s.to, news, s.looks}, max(0, s.next.Sub(now)), true
}

// ended records how an alarm ended. An operator that has looked meanwhile may have read something else.
func (s *alarms) ended(now time.Time, one alarm, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed++
		pause := min(alarmAgain<<min(s.failures, 8), alarmLimit)
		s.failures++
		s.next = now.Add(wait.Jitter(pause/2, 2)) // many members may fail at once
		return
	}
	s.arrived++
	s.failures, s.next = 0, now.Add(alarmEvery)
	if one.looks == s.looks {
		s.sent, s.hasArrived = one.news, true
	}
}

// counts returns how many alarms have arrived, and how many have not.
func (s *alarms) counts() (arrived, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived, s.failed
}

// sendAlarms sends alarms until the context ends.
func (a *Agent) sendAlarms(ctx context.Context) {
	for ctx.Err() == nil {
		next, after, isDue := a.alarms.due(time.Now(), a.Status().News())
		if isDue && after == 0 {
			a.sendAlarm(ctx, next)
			continue
		}
		if !isDue {
			after = lookEvery // a lease ends while the loop waits for mysqld
		}
		select {
		case <-ctx.Done():
		case <-a.changed:
		case <-time.After(after):
		}
	}
}

func (a *Agent) sendAlarm(ctx context.Context, one alarm) {
	security, err := a.tls.client()
	if err == nil {
		err = one.to.send(ctx, security)
	}
	a.alarms.ended(time.Now(), one, err)
	if err != nil {
		a.log.Info("an alarm did not arrive, so the operator notices what has changed when it looks next; will try again", "error", err.Error())
	}
}

// mayHaveNews makes the agent compare its report with what an operator has read.
func (a *Agent) mayHaveNews() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}
