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

// An alarm is a request of a member to the operator: look at this cluster now. A member sends an alarm if its report differs, in what must
// not wait (replication.News), from the one that an operator has read last. With each look, the operator says where it takes alarms. A
// member whose alarms do not arrive waits for the operator's next look.
//
// The operator looks at a cluster at rest every five minutes if the alarms of all its members arrive (Status.AlarmsArrive). Otherwise, it
// looks every ten seconds. So a member without news sends a test now and then, which causes no look.

const (
	// AlarmPath is where the operator takes alarms. They have no body.
	AlarmPath = "/v1/alarm"
	// AlarmTestPath is where it takes tests of alarms. They have no body either.
	AlarmTestPath = AlarmPath + "/test"
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
	// testEvery is the longest time between two tests, testAgain that after a test which did not arrive. It doubles up to testEvery each
	// further time. The first test comes within testSoon after the first look of an operator at another address than the last one.
	testEvery = 5 * time.Minute
	testAgain = 30 * time.Second
	testSoon  = 4 * time.Second
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

// AlarmTarget is where an operator takes alarms: its name, and its address with the port. The zero value takes none.
type AlarmTarget struct{ Host, Address string }

// AlarmTargetOf returns where the operator that sends a request takes alarms.
func AlarmTargetOf(r *http.Request) AlarmTarget {
	host, port, err := net.SplitHostPort(r.Header.Get(alarmHeader))
	address, _, failed := net.SplitHostPort(r.RemoteAddr)
	if err != nil || failed != nil {
		return AlarmTarget{}
	}
	return AlarmTarget{Host: host, Address: net.JoinHostPort(address, port)}
}

// Send sends an alarm, or a test, to one of the paths.
func (t AlarmTarget) Send(ctx context.Context, security *tls.Config, path string) error {
	ctx, cancel := context.WithTimeout(ctx, alarmTimeout)
	defer cancel()
	client := NewPodClient(security, t.Host)
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+t.Address+path, http.NoBody)
	if err == nil {
		_, err = Ask(client, request, 0)
	}
	if err != nil {
		return fmt.Errorf("send an alarm to the operator at %s: %w", t.Address, err)
	}
	return nil
}

// alarm is one about some news.
type alarm struct {
	to   AlarmTarget
	news replication.News
	// looks is how often operators had looked when it was due.
	looks int
}

// alarms is what the agent knows about alarms. The zero value knows no operator.
type alarms struct {
	mu sync.Mutex
	to AlarmTarget
	// read is what an operator has read last, and looks counts how often one has. sent is what the last alarm since then was about that
	// arrived, if hasArrived.
	read, sent replication.News
	looks      int
	hasArrived bool
	// next is when the next alarm may be sent. failures counts those in a row that did not arrive.
	next     time.Time
	failures int
	// testAt is when the next test is due, and lost counts those in a row that did not arrive. arrives reports whether the last alarm or test
	// has arrived.
	testAt  time.Time
	lost    int
	arrives bool
	// arrived and failed count all alarms and tests.
	arrived, failed int
}

// arriveAt reports whether alarms to an operator arrive.
func (s *alarms) arriveAt(by AlarmTarget) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrives && by == s.to
}

// looked records that an operator has read a report.
func (s *alarms) looked(now time.Time, by AlarmTarget, read replication.News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if by != s.to {
		s.next, s.arrives, s.lost, s.testAt = time.Time{}, false, 0, now.Add(wait.Jitter(testSoon/4, 3))
	}
	s.to, s.read, s.hasArrived, s.failures = by, read, false, 0
}

// due returns an alarm about this news and in how long to send it; isDue is false if none is needed.
func (s *alarms) due(now time.Time, news replication.News) (next alarm, after time.Duration, isDue bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == (AlarmTarget{}) || news == s.read || s.hasArrived && news == s.sent {
		return alarm{}, 0, false
	}
	return alarm{s.to, news, s.looks}, max(0, s.next.Sub(now)), true
}

// testDue returns where to send a test now; the zero value for nowhere.
func (s *alarms) testDue(now time.Time) AlarmTarget {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.testAt) {
		return AlarmTarget{}
	}
	return s.to
}

// tested records whether an alarm or a test has arrived. The next test is due some time after that.
func (s *alarms) tested(now time.Time, to AlarmTarget, arrived bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if arrived {
		s.arrived++
	} else {
		s.failed++
	}
	if to != s.to {
		return
	}
	s.arrives = arrived
	pause := testEvery
	if arrived {
		s.lost = 0
	} else {
		pause = min(testAgain<<min(s.lost, 8), testEvery)
		s.lost++
	}
	s.testAt = now.Add(wait.Jitter(pause/2, 1))
}

// ended records how an alarm ended. An operator that has looked meanwhile may have read something else.
func (s *alarms) ended(now time.Time, one alarm, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		pause := min(alarmAgain<<min(s.failures, 8), alarmLimit)
		s.failures++
		s.next = now.Add(wait.Jitter(pause/2, 2)) // many members may fail at once
		return
	}
	s.failures, s.next = 0, now.Add(alarmEvery)
	if one.looks == s.looks {
		s.sent, s.hasArrived = one.news, true
	}
}

// counts returns how many alarms and tests have arrived, and how many have not.
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
	err := a.sendTo(ctx, one.to, AlarmPath)
	a.alarms.ended(time.Now(), one, err)
	if err != nil {
		a.log.Info("an alarm did not arrive, so the operator notices what has changed when it looks next; will try again", "error", err.Error())
	}
}

// sendTo sends an alarm, or a test.
func (a *Agent) sendTo(ctx context.Context, to AlarmTarget, path string) error {
	security, err := a.tls.client()
	if err == nil {
		err = to.Send(ctx, security, path)
	}
	a.alarms.tested(time.Now(), to, err == nil)
	return err
}

// testAlarms tests whether alarms would arrive, until the context ends. No alarm waits for a test.
func (a *Agent) testAlarms(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		if to := a.alarms.testDue(time.Now()); to != (AlarmTarget{}) {
			if err := a.sendTo(ctx, to, AlarmTestPath); err != nil && ctx.Err() == nil {
				a.log.Info("a test of alarms did not arrive: the operator learns it when it looks next, and looks every ten seconds then", "error", err.Error())
			}
		}
	}
}

// mayHaveNews makes the agent compare its report with what an operator has read.
func (a *Agent) mayHaveNews() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}
