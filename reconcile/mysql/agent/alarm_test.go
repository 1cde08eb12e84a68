package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// TestAlarmIsDue follows one member through a failure.
func TestAlarmIsDue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	operator, another := AlarmTarget{"db.shop", "10.0.0.1:8443"}, AlarmTarget{"db.shop", "10.0.0.2:8443"}
	well, starts := replication.Status{State: replication.StateWriting}.News(), replication.Status{State: replication.StateStarting}.News()
	noRoute := errors.New("no route")
	var s alarms
	due := func(when string, news replication.News, want AlarmTarget, least, most time.Duration) alarm {
		t.Helper()
		next, after, isDue := s.due(now, news)
		if next.to != want || isDue != (want != AlarmTarget{}) || after < least || after > most {
			t.Errorf("%s: got an alarm to %+v in %s (due %t), want one to %+v in %s to %s", when, next.to, after, isDue, want, least, most)
		}
		return next
	}
	notDue := func(when string, news replication.News) {
		t.Helper()
		due(when, news, AlarmTarget{}, 0, 0)
	}

	notDue("no operator has looked yet", starts)
	s.looked(now, operator, well)
	notDue("the operator has read this", well)
	first := due("mysqld has ended", starts, operator, 0, 0)
	s.ended(now, first, noRoute)
	due("the alarm did not arrive", starts, operator, time.Second, 3*time.Second)
	notDue("it is as it was before", well)
	for range 70 {
		s.ended(now, first, noRoute)
	}
	due("many alarms did not arrive", starts, operator, 5*time.Second, 15*time.Second)
	s.looked(now, another, well)
	second := due("another operator has looked", starts, another, 0, 0)
	s.ended(now, second, nil)
	notDue("the alarm has arrived", starts)
	s.looked(now, another, starts)
	notDue("the operator has looked", starts)
	third := due("mysqld is back", well, another, alarmEvery, alarmEvery)
	now = now.Add(alarmEvery)
	s.looked(now, another, starts)
	s.ended(now, third, nil)
	due("an operator has looked while the alarm was sent, and may have read what was before", well, another, alarmEvery, alarmEvery)
	s.looked(now, AlarmTarget{}, starts)
	notDue("this operator takes no alarms", well)
}

// TestAlarmsAreTested: a member knows whether its alarms would arrive, also if it has had no news for long.
func TestAlarmsAreTested(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	operator, another, nowhere := AlarmTarget{"db.shop", "10.0.0.1:8443"}, AlarmTarget{"db.shop", "10.0.0.2:8443"}, AlarmTarget{}
	var s alarms
	due := func(after time.Duration, want AlarmTarget) {
		t.Helper()
		now = now.Add(after)
		if got := s.testDue(now); got != want {
			t.Errorf("after %s: a test is due at %+v, want %+v", after, got, want)
		}
	}
	arrive := func(when string, want bool) {
		t.Helper()
		if got := s.arriveAt(operator); got != want || s.arriveAt(another) {
			t.Errorf("%s: alarms arrive: %t, want %t", when, got, want)
		}
	}

	due(testEvery, nowhere)
	s.looked(now, operator, replication.News{})
	arrive("nothing was sent yet", false)
	due(testSoon, operator)
	s.tested(now, operator, true)
	arrive("a test has arrived", true)
	due(testEvery/2-1, nowhere)
	due(testEvery/2+1, operator)
	s.tested(now, operator, false)
	arrive("a test has not arrived", false)
	due(testAgain/2-1, nowhere)
	due(testAgain/2+1, operator)
	for range 70 {
		s.tested(now, operator, false)
	}
	due(testEvery/2-1, nowhere)
	s.tested(now, operator, true)
	arrive("an alarm has arrived", true)
	s.looked(now, another, replication.News{})
	s.tested(now, operator, true)
	arrive("another operator has looked, to which nothing was sent", false)
	due(testSoon, another)
	s.looked(now, nowhere, replication.News{})
	due(testEvery, nowhere)
	if arrived, failed := s.counts(); arrived != 3 || failed != 71 {
		t.Errorf("counted %d that arrived, and %d that did not", arrived, failed)
	}
}

// desk takes alarms as the operator does, on 127.0.0.1.
func desk(t *testing.T, ca authority) (port string, arrived <-chan struct{}) {
	t.Helper()
	certificate, key := ca.issue(7, OperatorName, AlarmHost("shop", "db"))
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	alarms := make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == AlarmPath && r.TLS.ServerName == AlarmHost("shop", "db") {
			alarms <- struct{}{}
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: ca.client("").RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err = net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, alarms
}

// TestAlarmArrives at the operator that has looked last, as soon as mysqld ends.
func TestAlarmArrives(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.agent.Run(ctx); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	port, arrived := desk(t, s.ca)
	operator := NewClient(s.ca.operator(), 5*time.Second).WithAlarms(func() string { return net.JoinHostPort(AlarmHost("shop", "db"), port) })
	// Its first looks at the volume and at mysqld may be news, too.
	hasNoNews := func() {
		t.Helper()
		for range 20 {
			if _, err := operator.Status(t.Context(), Target{Address: s.address, Host: memberHost}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-arrived:
			case <-time.After(50 * time.Millisecond): // for a goroutine that may be wrong, a longer wait would not prove more
				return
			}
		}
		t.Fatal("alarms without news")
	}
	for mysqld := range 2 {
		hasNoNews()
		s.agent.supervised(supervisor.State{Running: true, Start: fmt.Sprint(mysqld)})
		select {
		case <-arrived:
		case <-time.After(5 * time.Second):
			t.Fatal("mysqld has started, and no alarm has arrived")
		}
	}
}

// TestAlarmsGoToTheOperatorOnly: another program may have the operator's address by now.
func TestAlarmsGoToTheOperatorOnly(t *testing.T) {
	t.Parallel()
	s := serve(t)
	port, taken := desk(t, newAuthority(t))
	s.agent.sendAlarm(t.Context(), alarm{to: AlarmTarget{Host: AlarmHost("shop", "db"), Address: net.JoinHostPort("127.0.0.1", port)}})
	if arrived, failed := s.agent.alarms.counts(); arrived != 0 || failed != 1 || len(taken) > 0 {
		t.Error("a program with a certificate of another CA took the alarm")
	}
}

// TestAReportMayBeNews before the step that follows from it, which may take minutes.
func TestAReportMayBeNews(t *testing.T) {
	t.Parallel()
	tests := map[string]func(a *Agent){
		"mysqld was observed": func(a *Agent) {
			observed := someObservation()
			local := a.localView(observed)
			a.publish(observed, local, replication.NextStep(local), followed{})
		},
		"mysqld does not answer": func(a *Agent) { a.unanswered(errors.New("no answer"), followed{}) },
		"mysqld has started":     func(a *Agent) { a.supervised(supervisor.State{Running: true, Start: "first"}) },
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, newLayout(t), memberState())
			happens(a)
			select {
			case <-a.changed:
			default:
				t.Error("the agent does not compare its report with what an operator has read")
			}
		})
	}
}

func TestAlarmHost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		host, namespace, cluster string
		ok                       bool
	}{
		"of a cluster":    {AlarmHost("shop", "db"), "shop", "db", true},
		"of a member":     {memberHost, "", "", false},
		"of no namespace": {"db.alarms.mysql-operator", "", "", false},
		"nothing":         {"", "", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, cluster, ok := ClusterOfAlarms(test.host)
			if ok != test.ok || ok && (namespace != test.namespace || cluster != test.cluster) {
				t.Errorf("got %q, %q, %t", namespace, cluster, ok)
			}
		})
	}
}
