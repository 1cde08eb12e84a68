//go:build !without_pulsar

package pulsar

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/pulsarbroker"
)

func TestMessagesAreLoggedAndAcknowledged(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	c := consume(t, settingsFor(serve(t, cluster, nil)))
	c.ready(t, true)
	is(t, "consumers", cluster.Consumers, "pod-1")
	want := []string{}
	for number := range 3 * receiverQueue {
		want = append(want, fmt.Sprint("message ", number))
		cluster.Publish(want[number])
	}
	is(t, "logged", c.log.messages(t), want...)
	is(t, "acknowledged", cluster.Acknowledged, want...)
	if again := cluster.Redelivered(); len(again) > 0 {
		t.Errorf("delivered twice: %v", again)
	}
}

func TestReadinessIsAnsweredOverHTTP(t *testing.T) {
	t.Parallel()
	c := &Consumer{}
	ask := func() int {
		answer := httptest.NewRecorder()
		c.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return answer.Code
	}
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("without a subscription it answers %d", got)
	}
	subscribed := &connectionState{now: time.Now, log: discard()}
	c.link.Store(subscribed)
	if got := ask(); got != http.StatusOK {
		t.Errorf("with a subscription it answers %d", got)
	}
	subscribed.policy()
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("without its connection it answers %d", got)
	}
}

func TestNothingIsLostWhenTheConnectionIsCut(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	broker := serve(t, cluster, nil)
	c := consume(t, settingsFor(broker))
	c.ready(t, true)
	want := []string{}
	for round := range 5 {
		for number := range 20 {
			want = append(want, fmt.Sprint(round, " ", number))
			cluster.Publish(want[len(want)-1])
		}
		broker.Cut()
	}
	c.consumes(t, cluster, want)
	c.ready(t, true)
	c.log.says(t, "connection lost, connecting again", "")
	c.log.says(t, "connected again", "")
}

func TestTheBrokerIsStartedAnew(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	broker := serve(t, cluster, nil)
	c := consume(t, settingsFor(broker))
	c.ready(t, true)
	if err := broker.Stop(); err != nil {
		t.Fatal(err)
	}
	c.ready(t, false)
	cluster.Publish("while it was away")
	cluster.Move(serveAt(t, cluster, nil, strings.TrimPrefix(broker.URL(), "pulsar://")))
	is(t, "acknowledged", cluster.Acknowledged, "while it was away")
	c.ready(t, true)
}

func TestTheBrokerComesLater(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	first := serve(t, cluster, nil)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	c := consume(t, settingsFor(first))
	c.log.says(t, "not subscribed, trying again", "connection refused")
	cluster.Publish("early")
	cluster.Move(serveAt(t, cluster, nil, strings.TrimPrefix(first.URL(), "pulsar://")))
	is(t, "acknowledged", cluster.Acknowledged, "early")
}

func TestTheTopicIsServedByAnotherBroker(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	first, second := serve(t, cluster, nil), serve(t, cluster, nil)
	cluster.Move(second)
	c := consume(t, settingsFor(first))
	c.ready(t, true)
	cluster.Publish("at the second")
	is(t, "acknowledged", cluster.Acknowledged, "at the second")

	t.Log("the topic moves while it is consumed")
	cluster.Move(first)
	cluster.Publish("at the first")
	is(t, "acknowledged", cluster.Acknowledged, "at the second", "at the first")
	c.ready(t, true)
}

func TestATokenIsRefusedAndCorrected(t *testing.T) {
	t.Parallel()
	// Words that the log has only as parts of tokens.
	const wrong, right, next = "token-that-is-wrong", "token-that-is-right", "token-that-is-next"
	cluster := pulsarbroker.New()
	cluster.Require(right)
	settings := settingsFor(serve(t, cluster, nil))
	settings.Credentials = secretOf(t, map[string]string{"token": wrong + "\n"})
	c := consume(t, settings, everything)
	c.log.says(t, "not subscribed, trying again", "Failed to authenticate")
	if c.Ready() {
		t.Error("it is ready, though it was refused")
	}

	t.Log("the Secret is corrected")
	put(t, settings.Credentials, "token", right+"\n")
	c.ready(t, true)
	cluster.Publish("welcome")
	is(t, "acknowledged", cluster.Acknowledged, "welcome")
	c.log.says(t, "sending the token without TLS: anyone who can read the connection can use it", "")

	t.Log("the token expires, and the broker asks for the next")
	put(t, settings.Credentials, "token", next+"\n")
	cluster.Require(next)
	cluster.Challenge()
	cluster.Publish("still welcome")
	is(t, "acknowledged", cluster.Acknowledged, "welcome", "still welcome")
	eventually(t, func() string {
		if !slices.Contains(cluster.Heard(), "token "+next) {
			return fmt.Sprintf("the next token was not sent: %v", cluster.Heard())
		}
		return ""
	})
	log := c.log.raw()
	for _, token := range []string{wrong, right, next} {
		if strings.Contains(log, token) || strings.Contains(log, base64.StdEncoding.EncodeToString([]byte(token))) {
			t.Errorf("the token %s is in the log:\n%s", token, log)
		}
	}
}

func TestTheSecretIsMissing(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	settings := settingsFor(serve(t, cluster, nil))
	settings.Credentials = secretOf(t, nil)
	c := consume(t, settings)
	c.log.says(t, "not subscribed, trying again", "the Secret does not exist, or has none of the keys token, ca.crt, tls.crt, tls.key")
	put(t, settings.Credentials, "token", "any")
	c.ready(t, true)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	certificate, private := ours.sign(t, "127.0.0.1")
	strict := ours.server(t, "127.0.0.1")
	strict.ClientAuth = tls.RequireAndVerifyClientCert
	for story, test := range map[string]struct {
		server *tls.Config
		files  map[string]string
		// refused is why there is no subscription; empty if there is one.
		refused string
	}{
		"the authority is known":              {ours.server(t, "127.0.0.1"), map[string]string{"ca.crt": ours.pem}, ""},
		"another authority":                   {ours.server(t, "127.0.0.1"), map[string]string{"ca.crt": others.pem}, "certificate"},
		"no authority":                        {ours.server(t, "127.0.0.1"), map[string]string{"token": "any"}, "certificate"},
		"an authority that is none":           {ours.server(t, "127.0.0.1"), map[string]string{"ca.crt": "none"}, "no certificate in PEM form"},
		"the certificate is for another":      {ours.server(t, "127.0.0.2"), map[string]string{"ca.crt": ours.pem}, "127.0.0.2"},
		"the broker wants a certificate":      {strict, map[string]string{"ca.crt": ours.pem, "tls.crt": certificate, "tls.key": private}, ""},
		"it wants a certificate, and a token": {strict, map[string]string{"ca.crt": ours.pem, "tls.crt": certificate, "tls.key": private, "token": "any"}, ""},
		"it wants one, and there is none":     {strict, map[string]string{"ca.crt": ours.pem}, "certificate"},
		"the key is missing":                  {strict, map[string]string{"ca.crt": ours.pem, "tls.crt": certificate}, "tls.key"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			cluster := pulsarbroker.New()
			settings := settingsFor(serve(t, cluster, test.server))
			settings.Credentials = secretOf(t, test.files)
			c := consume(t, settings)
			if test.refused != "" {
				c.log.says(t, "not subscribed, trying again", test.refused)
				return
			}
			c.ready(t, true)
			cluster.Publish("secret")
			is(t, "acknowledged", cluster.Acknowledged, "secret")
		})
	}
}

// TestEveryBrokerIsVerifiedByItsOwnName uses two brokers with certificates for their own addresses, like those of a StatefulSet.
func TestEveryBrokerIsVerifiedByItsOwnName(t *testing.T) {
	t.Parallel()
	ours, cluster := newAuthority(t), pulsarbroker.New()
	first := serveAt(t, cluster, ours.server(t, "127.0.0.1"), "127.0.0.1:0")
	second := serveAt(t, cluster, ours.server(t, "127.0.0.2"), "127.0.0.2:0")
	cluster.Move(second)
	settings := settingsFor(first)
	settings.Credentials = secretOf(t, map[string]string{"ca.crt": ours.pem})
	c := consume(t, settings)
	c.ready(t, true)
	cluster.Publish("secret")
	is(t, "acknowledged", cluster.Acknowledged, "secret")
}

func TestStopWhileNobodyAnswers(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	cluster.Deafen(true)
	c := consume(t, settingsFor(serve(t, cluster, nil)))
	eventually(t, func() string {
		if len(cluster.Heard()) == 0 {
			return "the consumer has not connected"
		}
		return ""
	})
	before := time.Now()
	c.end(t)
	if took := time.Since(before); took > 2*closeTimeout {
		t.Errorf("it took %s to stop", took)
	}
}

func TestABrokerThatHangsIsLeft(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	c := consume(t, settingsFor(serve(t, cluster, nil)), func(r *running) { r.limits.alive = 100 * time.Millisecond })
	c.ready(t, true)
	cluster.Deafen(true)
	c.ready(t, false)
	cluster.Deafen(false)
	cluster.Publish("after it hung")
	is(t, "acknowledged", cluster.Acknowledged, "after it hung")
}

// TestATopicThatIsGoneComesBack: the library stops reconnecting if the topic is gone when it connects again.
func TestATopicThatIsGoneComesBack(t *testing.T) {
	t.Parallel()
	cluster := pulsarbroker.New()
	broker := serve(t, cluster, nil)
	c := consume(t, settingsFor(broker), func(r *running) { r.limits.lost = 200 * time.Millisecond })
	c.ready(t, true)
	cluster.Refuse("SUBSCRIBE", "TopicNotFound", "Topic does not exist")
	broker.Cut()
	c.log.says(t, "not subscribed, trying again", errLost.Error())
	c.log.says(t, "not subscribed, trying again", "TopicNotFound")
	cluster.Allow("SUBSCRIBE")
	c.ready(t, true)
	cluster.Publish("in the new topic")
	is(t, "acknowledged", cluster.Acknowledged, "in the new topic")
}
