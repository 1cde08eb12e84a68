package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestOwnSecretsAreMadeAgain: somebody deletes the Secrets that the operator made. They come back with another CA and other passwords, which
// the running members take over; nobody is locked out, also not after a restart of mysqld.
func TestOwnSecretsAreMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start(2)
	p.exec(p.open(p.cluster, p.password), "CREATE DATABASE kept")
	before := p.secretData("-accounts") + p.secretData("-ca") + p.secretData("-tls")
	p.run("delete", "secret", p.cluster+"-accounts", p.cluster+"-ca", p.cluster+"-tls", "-n", p.namespace)
	// The operator looks at Secrets, which it does not watch, every five minutes and whenever it starts.
	kill(t, "mysql-operator", "mysql-operator")
	p.wait("the Secrets to be made again", changeLimit, func(context.Context) (bool, string) {
		now, err := p.try("get", "secret", p.cluster+"-accounts", p.cluster+"-ca", p.cluster+"-tls", "-o", "name")
		return err == nil, now
	})
	if after := p.secretData("-accounts") + p.secretData("-ca") + p.secretData("-tls"); after == before {
		t.Fatal("the Secrets were not made anew")
	}
	for _, member := range []string{"-0", "-1"} {
		p.wait("member "+member+" to take the new passwords over", 3*time.Minute, func(ctx context.Context) (bool, string) {
			logs, err := p.kubectl.Run(ctx, "logs", p.cluster+member, "-c", "agent", "-n", p.namespace)
			return err == nil && strings.Contains(logs, "the operator's accounts have new passwords"), "not yet"
		})
	}
	p.settled(2)
	for _, member := range []string{"-0", "-1"} {
		t.Logf("mysqld of %s starts again", member)
		kill(t, p.cluster+member, "mysqld")
		p.wait("mysqld to be gone", changeLimit, func(context.Context) (bool, string) {
			seen := p.run("get", "pod", p.cluster+member, "-n", p.namespace, "-o", `jsonpath={.status.containerStatuses[?(@.name=="mysqld")].lastState.terminated.exitCode}`)
			return seen == "137", seen
		})
		p.settled(2)
	}
	p.exec(p.open(p.cluster, p.password), "CREATE DATABASE after")
	p.waitValue(p.open(p.cluster+"-read", p.password), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name IN ('kept', 'after')", "2", 30*time.Second)
}

func (p *place) secretData(suffix string) string {
	p.t.Helper()
	return p.run("get", "secret", p.cluster+suffix, "-n", p.namespace, "-o", "jsonpath={.data}")
}
