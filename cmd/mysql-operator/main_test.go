package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCommandLines(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		arguments   []string
		environment map[string]string
		status      int
		says        string
	}{
		"help":                       {[]string{"help"}, nil, 0, "manifests [crds|rbac|policy|operator|protection|all]"},
		"version":                    {[]string{"version"}, nil, 0, "mysql-operator "},
		"help of a subcommand":       {[]string{"run", "--help"}, nil, 0, "--leader-elect"},
		"help without subcommand":    {[]string{"--help"}, nil, 0, "--leader-elect"},
		"no such subcommand":         {[]string{"fly"}, nil, exitUsage, `no subcommand "fly"`},
		"no such flag":               {[]string{"run", "--speed=9"}, nil, exitUsage, "speed"},
		"no such kind":               {[]string{"run", "--kinds=Postgres"}, nil, exitUsage, `no kind is called "postgres"`},
		"no such kind, by env":       {[]string{"run"}, map[string]string{"MYSQL_OPERATOR_KINDS": "Postgres"}, exitUsage, `"postgres"`},
		"no such way for crds":       {[]string{"run", "--crds=maybe"}, nil, exitUsage, "use one of apply, check, off"},
		"no namespace, but a comma":  {[]string{"run", "--namespaces=,"}, nil, exitUsage, "--namespaces has an empty name"},
		"a namespace without a name": {[]string{"run", "--namespaces=shop, "}, nil, exitUsage, "leave the flag out for all namespaces"},
		"a blank namespace, by env":  {[]string{"run"}, map[string]string{"MYSQL_OPERATOR_NAMESPACES": " "}, exitUsage, "--namespaces has an empty name"},
		"rights in no namespace":     {[]string{"manifests", "rbac", "--namespaces=,"}, nil, exitUsage, "--namespaces has an empty name"},
		"an argument too many":       {[]string{"run", "now"}, nil, exitUsage, `"now"`},
		"no such log level":          {[]string{"run", "--log-level=loud"}, nil, exitUsage, "use one of error, info, debug, trace"},
		"an environment not true":    {[]string{"run"}, map[string]string{"MYSQL_OPERATOR_LEADER_ELECT": "often"}, exitUsage, "MYSQL_OPERATOR_LEADER_ELECT"},
		"no such manifests":          {[]string{"manifests", "poetry"}, nil, exitUsage, `not "poetry"`},
		"crds without a verb":        {[]string{"crds"}, nil, exitUsage, "plan, apply, status"},
		"no such kubeconfig":         {[]string{"run", "--kubeconfig=/does/not/exist"}, nil, exitFailure, "name one with --kubeconfig"},
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
	_, err := parse(o.flags(), process{arguments: []string{"--log-level=error"}, environment: func(name string) string { return environment[name] }})
	if err != nil {
		t.Fatal(err)
	}
	if o.log.level != "error" || len(o.namespaces) != 2 || o.leaderElect {
		t.Errorf("read %+v", o)
	}
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	options := logOptions{level: "debug", format: "json"}
	core, err := options.core(&out)
	if err != nil {
		t.Fatal(err)
	}
	log := newLogger(core)
	log.Info("one", "kind", "MySQLCluster")
	log.V(1).Info("two")
	log.V(2).Info("not said")
	log.Error(errors.New("cause"), "three")
	lines := []map[string]any{}
	for decoder := json.NewDecoder(&out); decoder.More(); {
		line := map[string]any{}
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if len(lines) != 3 || lines[0]["kind"] != "MySQLCluster" || lines[1]["level"] != "debug" || lines[2]["error"] != "cause" {
		t.Errorf("logged %v", lines)
	}
}

func TestLastingLabels(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct{ labels, want map[string]string }{
		"a Deployment's":           {map[string]string{"app.kubernetes.io/name": "mysql-operator", "app.kubernetes.io/version": "1", "pod-template-hash": "x"}, map[string]string{"app.kubernetes.io/name": "mysql-operator"}},
		"kubectl run's":            {map[string]string{"run": "mysql-operator"}, map[string]string{"run": "mysql-operator"}},
		"those of a release alone": {map[string]string{"pod-template-hash": "x", "version": "1"}, nil},
		"none":                     {nil, nil},
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
		"beside a sidecar":                 {[]corev1.Container{container("proxy", "p"), container("mysql-operator", "i:2")}, "i:2"},
		"not to be told":                   {[]corev1.Container{container("a", "p"), container("b", "i:2")}, ""},
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
