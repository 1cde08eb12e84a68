package main

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-operator/mysql-operator/cmd/internal/cli"
)

func TestCommandLines(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		arguments   []string
		environment map[string]string
		status      int
		says        string
	}{
		"help":                        {[]string{"help"}, nil, 0, "manifests [crds|rbac|policy|operator|protection|all]"},
		"version":                     {[]string{"version"}, nil, 0, "mysql-operator "},
		"help of a subcommand":        {[]string{"run", "--help"}, nil, 0, "--leader-elect"},
		"help without subcommand":     {[]string{"--help"}, nil, 0, "--leader-elect"},
		"no such subcommand":          {[]string{"fly"}, nil, cli.ExitUsage, `no subcommand "fly"`},
		"no such flag":                {[]string{"run", "--speed=9"}, nil, cli.ExitUsage, "speed"},
		"no such kind":                {[]string{"run", "--kinds=Postgres"}, nil, cli.ExitUsage, `no kind is called "postgres"`},
		"no such kind, by env":        {[]string{"run"}, map[string]string{"MYSQL_OPERATOR_KINDS": "Postgres"}, cli.ExitUsage, `"postgres"`},
		"no such value of crds":       {[]string{"run", "--crds=maybe"}, nil, cli.ExitUsage, "use one of apply, check, off"},
		"no namespace, but a comma":   {[]string{"run", "--namespaces=,"}, nil, cli.ExitUsage, "--namespaces has an empty name"},
		"a namespace without a name":  {[]string{"run", "--namespaces=shop, "}, nil, cli.ExitUsage, "leave the flag out for all namespaces"},
		"a blank namespace, by env":   {[]string{"run"}, map[string]string{"MYSQL_OPERATOR_NAMESPACES": " "}, cli.ExitUsage, "--namespaces has an empty name"},
		"permissions in no namespace": {[]string{"manifests", "rbac", "--namespaces=,"}, nil, cli.ExitUsage, "--namespaces has an empty name"},
		"an argument too many":        {[]string{"run", "now"}, nil, cli.ExitUsage, `"now"`},
		"no such log level":           {[]string{"run", "--log-level=loud"}, nil, cli.ExitUsage, "use one of error, info, debug, trace"},
		"an environment not true":     {[]string{"run"}, map[string]string{"MYSQL_OPERATOR_LEADER_ELECT": "often"}, cli.ExitUsage, "MYSQL_OPERATOR_LEADER_ELECT"},
		"no such manifests":           {[]string{"manifests", "poetry"}, nil, cli.ExitUsage, `not "poetry"`},
		"crds without a verb":         {[]string{"crds"}, nil, cli.ExitUsage, "plan, apply, status"},
		"explain without a cluster":   {[]string{"explain", "failover"}, nil, cli.ExitUsage, "failover NAMESPACE/NAME"},
		"explain without a namespace": {[]string{"explain", "failover", "db"}, nil, cli.ExitUsage, `not "db"`},
		"no such output":              {[]string{"explain", "failover", "a/db", "-o", "xml"}, nil, cli.ExitUsage, "use one of text, json"},
		"no such kubeconfig":          {[]string{"run", "--kubeconfig=/does/not/exist"}, nil, cli.ExitFailure, "name one with --kubeconfig"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			status, out, err := called(t, test.environment, test.arguments...)
			if status != test.status || !strings.Contains(out+err, test.says) {
				t.Errorf("exit status %d and %q, want %d and a word of %q", status, out+err, test.status, test.says)
			}
		})
	}
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	t.Parallel()
	o := runOptions{}
	environment := map[string]string{"MYSQL_OPERATOR_LOG_LEVEL": "debug", "MYSQL_OPERATOR_NAMESPACES": "a,b", "MYSQL_OPERATOR_LEADER_ELECT": "false"}
	_, err := cli.Parse(o.flags(), cli.Process{Arguments: []string{"--log-level=error"}, Environment: func(name string) string { return environment[name] }})
	if err != nil {
		t.Fatal(err)
	}
	if o.log.Level != "error" || len(o.namespaces) != 2 || o.leaderElect {
		t.Errorf("read %+v", o)
	}
}

func TestLastingLabels(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct{ labels, want map[string]string }{
		"a Deployment's":          {map[string]string{"app.kubernetes.io/name": "mysql-operator", "app.kubernetes.io/version": "1", "pod-template-hash": "x"}, map[string]string{"app.kubernetes.io/name": "mysql-operator"}},
		"kubectl run's":           {map[string]string{"run": "mysql-operator"}, map[string]string{"run": "mysql-operator"}},
		"only those of a release": {map[string]string{"pod-template-hash": "x", "version": "1"}, nil},
		"none":                    {nil, nil},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			if got := lastingLabels(test.labels); !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestImageOfTheOwnPod(t *testing.T) {
	t.Parallel()
	container := func(name, image string) corev1.Container { return corev1.Container{Name: name, Image: image} }
	for story, test := range map[string]struct {
		containers []corev1.Container
		want       string
	}{
		"kubectl run names it as it likes": {[]corev1.Container{container("x", "i:1")}, "i:1"},
		"with a sidecar":                   {[]corev1.Container{container("proxy", "p"), container("mysql-operator", "i:2")}, "i:2"},
		"ambiguous":                        {[]corev1.Container{container("a", "p"), container("b", "i:2")}, ""},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			got, err := imageOf(&corev1.Pod{Spec: corev1.PodSpec{Containers: test.containers}})
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("image %q, error %v; want %q", got, err, test.want)
			}
		})
	}
}
