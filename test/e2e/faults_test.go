package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/test/sample"
)

// TestMembersComeBack kills everything that can be killed in members, under writes. Each member returns to its role by itself, no
// acknowledged write is lost, and clients continue. The user gives a primary time to restart, so no replica takes over, however slow the
// machine is.
func TestMembersComeBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(3, "failover: {whenPrimaryCrashes: Restart, notReadySeconds: 120, unreachableSeconds: 120}")
	w := p.startWriter()
	primary, replica := p.cluster+"-0", p.cluster+"-1"
	const inPlace = 4 // stories in which no container of a mysqld starts again
	stories := []struct {
		name  string
		fault func()
	}{
		{"the replica's agent is killed", func() { kill(t, replica, agent.Program) }},
		{"the primary's agent is killed", func() { kill(t, primary, agent.Program) }},
		{"the replica's mysqld is killed", func() { kill(t, replica, "mysqld") }},
		{"the primary's mysqld is killed", func() { kill(t, primary, "mysqld") }},
		{"the replica's Pod is deleted", func() { p.run("delete", "pod", replica, "-n", p.namespace, "--wait=false") }},
		{"the primary's Pod is deleted", func() { p.run("delete", "pod", primary, "-n", p.namespace, "--wait=false") }},
		{"the replica's Pod is deleted while its mysqld starts", func() {
			p.deletePod(replica)
			p.wait("mysqld to be started", changeLimit, func(ctx context.Context) (bool, string) {
				started, err := p.objects.Field(ctx, core("pods"), p.namespace, replica, `{.status.containerStatuses[?(@.name=="mysqld")].state.running.startedAt}`)
				return err == nil && started != "", fmt.Sprint(started, err)
			})
			p.run("delete", "pod", replica, "-n", p.namespace, "--timeout=120s") // its grace period is longer
		}},
		{"the primary's Pod is deleted without grace", func() {
			p.run("delete", "pod", primary, "-n", p.namespace, "--force", "--grace-period=0", "--wait=false")
		}},
	}
	sampled := sample.New(t)
	for i, story := range stories {
		if !sampled.Takes(i) {
			continue
		}
		t.Log(story.name)
		p.goesOn(w)
		before, containers := p.lives(3), p.restarts()
		began := time.Now()
		story.fault()
		p.wait("the fault to show", changeLimit, func(context.Context) (bool, string) {
			now := p.lives(3)
			return now != before, now
		})
		p.goesOn(w)
		t.Logf("clients write again after %s", time.Since(began))
		p.settled(3)
		if now := p.restarts(); i < inPlace && now != containers {
			t.Errorf("the containers are %s, were %s", now, containers)
		}
	}
	w.end()
	p.nothingLost(w, p.open(p.cluster, p.password))
	if got := p.run("get", "mc", p.cluster, "-n", p.namespace, "-o", "jsonpath={.status.primary} {.status.epoch}"); got != primary+" 1" {
		t.Errorf("the primary stays the primary: %s", got)
	}
}

// lives changes whenever a member's mysqld or agent starts or ends.
func (p *place) lives(members int) string {
	p.t.Helper()
	var all []string
	for ordinal := range members {
		pod := fmt.Sprintf("%s-%d", p.cluster, ordinal)
		all = append(all, fmt.Sprintf("%s: mysqld %v, agent %v", pod, processes(p.t.T, pod, "mysqld"), processes(p.t.T, pod, agent.Program)))
	}
	return strings.Join(all, "; ")
}

// restarts changes whenever a container restarts, other than an agent, or a Pod is replaced.
func (p *place) restarts() string {
	p.t.Helper()
	const path = `{range .items[*]}{.metadata.uid}{" "}{.status.containerStatuses[*].restartCount}{"\n"}{end}`
	ctx, cancel := p.context(answerLimit)
	defer cancel()
	text, err := p.objects.Fields(ctx, core("pods"), p.namespace, metav1.ListOptions{}, path)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}
