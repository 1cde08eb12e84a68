package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-operator/mysql-operator/test/sample"
)

// helloManifest is the founding document's, letter for letter but for the namespace, which is the test's own.
const helloManifest = `
apiVersion: schedule.rs/v1 # see we have added new api group v
kind: TDSet # new kind -> resource
metadata:
  name: tdset-hello-world
  namespace: %s
spec:
  container:
    image: crccheck/hello-world
    port: 8000
  schedulingConfig:
  - startTime: 9 # 24 hour format
    endTime: 17
    replica: 5
  - startTime: 17
    endTime: 19
    replica: 3
  - startTime: 19
    endTime: 0
    replica: 2
  - startTime: 1
    endTime: 7
    replica: 2
  - startTime: 7
    endTime: 9
    replica: 3
  defaultReplica: 3
`

// helloImage is the name that the document gives its application. The dev cluster has the small one of these tests under it.
const helloImage = "crccheck/hello-world"

// newHello is a namespace that, as the document's, does not ask Pods for anything.
func newHello(t *testing.T) *place {
	t.Helper()
	p := newOpenPlace(t)
	loadProgram(t, p.kubectl.Config, "./test/e2e/hello", helloImage+":latest")
	return p
}

// zoneAt is a time zone in which clocks show this hour now.
func zoneAt(hour int) string {
	ahead := (hour - time.Now().UTC().Hour() + 36) % 24 // 12 is none: from 12 hours behind UTC to 11 ahead of it
	switch ahead -= 12; {
	case ahead > 0:
		return fmt.Sprintf("Etc/GMT-%d", ahead) // the sign is POSIX's: what is ahead of UTC has a minus
	case ahead < 0:
		return fmt.Sprintf("Etc/GMT+%d", -ahead)
	}
	return "UTC"
}

// hello waits until the TDSet says this in its columns Interval, Scheduled, Replicas, Ready and Status, and the Deployment has as many
// Pods.
func (p *place) hello(want string) {
	p.t.Helper()
	p.wait("the TDSet to say "+want, readyLimit, func(ctx context.Context) (bool, string) {
		text, err := p.kubectl.Run(ctx, "get", "tdset", "tdset-hello-world", "-n", p.namespace, "--no-headers")
		fields := strings.Fields(text)
		if err != nil || len(fields) < 6 {
			return false, fmt.Sprintf("%s %v", text, err)
		}
		return strings.Join(fields[1:6], " ") == want, text
	})
}

// TestTDSetWalkThrough goes through a day of the founding document, by moving the TDSet to where it is that hour now.
func TestTDSetWalkThrough(t *testing.T) {
	t.Parallel()
	sample.Rotate(t, 3)
	p := newHello(t)
	p.mustApply(fmt.Sprintf(helloManifest, p.namespace))
	for _, hour := range []struct {
		hour int
		says string
	}{
		{9, "09:00-17:00 5 5 True FollowsSchedule"}, {17, "17:00-19:00 3 3 True FollowsSchedule"}, {19, "19:00-00:00 2 2 True FollowsSchedule"},
		{1, "01:00-07:00 2 2 True FollowsSchedule"}, {7, "07:00-09:00 3 3 True FollowsSchedule"},
	} {
		zone := zoneAt(hour.hour)
		t.Logf("in %s it is %d o'clock", zone, hour.hour)
		p.run("patch", "tdset", "tdset-hello-world", "-n", p.namespace, "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"timeZone":%q}}`, zone))
		p.hello(hour.says)
	}

	t.Log("a Service leads to the Pods")
	p.run("patch", "tdset", "tdset-hello-world", "-n", p.namespace, "--type=merge", "--patch", `{"spec":{"service":{"port":80}}}`)
	p.wait("the application to answer", changeLimit, func(ctx context.Context) (bool, string) {
		text, err := p.kubectl.Run(ctx, "get", "--raw", "/api/v1/namespaces/"+p.namespace+"/services/tdset-hello-world:80/proxy/")
		return err == nil && strings.TrimSpace(text) == "Hello World", fmt.Sprintf("%q %v", text, err)
	})

	t.Log("scaled by hand, held, and by the schedule again")
	p.run("scale", "deployment", "tdset-hello-world", "-n", p.namespace, "--replicas=1")
	p.hello("07:00-09:00 3 1 False ScaledByHand")
	p.run("scale", "tdset", "tdset-hello-world", "-n", p.namespace, "--replicas=4")
	p.hello("07:00-09:00 3 4 True Held")
	p.run("patch", "tdset", "tdset-hello-world", "-n", p.namespace, "--type=merge", "--patch", `{"spec":{"replicas":null}}`)
	p.hello("07:00-09:00 3 3 True FollowsSchedule")

	t.Log("deleting it cleans up")
	p.run("delete", "tdset", "tdset-hello-world", "-n", p.namespace, "--cascade=foreground", "--timeout=120s")
	if left := p.run("get", "deployments,services,replicasets", "-n", p.namespace, "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("it left %s", left)
	}
}
