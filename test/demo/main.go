// Command demo shows every step on a cluster. kubectl run starts the operator under its service account, and the operator registers its
// definitions. Then the demo applies the original my-cluster, waits until real MySQL replicates in real Pods, and writes and reads rows
// through the Services. It prints every command, and a user could type each of them. It can be repeated.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mysql-operator/mysql-operator/test/kube"
	"github.com/mysql-operator/mysql-operator/test/program"
)

const (
	namespace = "default"
	// mark is the label of the demo's own Secret. It distinguishes the Secret, and so the demo's cluster, from those of a user.
	mark     = "mysql-operator-demo"
	password = "demo-Passw0rd"
	secret   = `apiVersion: v1
kind: Secret
metadata:
  name: my-secret
  labels: {` + mark + `: "true"}
stringData:
  password: ` + password + "\n"
	withBackup = `apiVersion: cr.mysqloperator.grtl.github.com/v1
kind: MySQLCluster
metadata:
  name: "my-cluster"
spec:
  secret: "my-secret"
  fromBackup: "my-backup-2017-12-14-01-22"
  port: 3306
  replicas: 2
  storage: "1Gi"
  image: "mysql:latest"
`
)

func main() {
	os.Exit(program.Run(context.Background(), "demo", run))
}

func run(ctx context.Context) error {
	kubectl, err := kube.FromEnvironment()
	if err != nil {
		return err
	}
	kubectl.Echo = os.Stdout
	d := demo{kubectl: kubectl, quiet: kubectl, disposable: kube.IsDevCluster(kubectl.Config)}
	d.quiet.Echo = nil
	for _, part := range []struct {
		title string
		show  func(context.Context) error
	}{
		{"Start the operator: one image, under a service account with only the permissions it needs", d.operator},
		{"Kubernetes now has the MySQL kinds", d.definitions},
		{"The founding document's my-cluster, unchanged: its backup does not exist, so it waits and reports this", d.waits},
		{"The same without fromBackup: an empty cluster of two", d.ready},
		{"Write through the Service my-cluster, read through my-cluster-read", d.rows},
		{"The objects that now exist", d.look},
	} {
		fmt.Printf("\n=== %s\n", part.title)
		if err := part.show(ctx); err != nil {
			return err
		}
	}
	fmt.Println("demo: ok")
	return nil
}

type demo struct {
	kubectl, quiet kube.Kubectl
	// disposable: it is a dev cluster, which holds no data that a user needs.
	disposable bool
}

func (d demo) operator(ctx context.Context) error {
	if err := kube.DeleteDeployedOperators(ctx, d.kubectl); err != nil {
		return err
	}
	return kube.OperatorFromEnvironment(namespace).Run(ctx, d.kubectl)
}

func (d demo) definitions(ctx context.Context) error {
	if _, err := d.kubectl.Run(ctx, "get", "crd", "-l", "app.kubernetes.io/managed-by=mysql-operator"); err != nil {
		return err
	}
	// The API server publishes the descriptions a moment after it serves the resource.
	err := kube.Wait(ctx, "kubectl explain to know the fields", time.Minute, func(ctx context.Context) (bool, string) {
		seen, err := d.quiet.Run(ctx, "explain", "mysqlcluster.spec.storage")
		return err == nil, seen
	})
	if err != nil {
		return err
	}
	_, err = d.kubectl.Run(ctx, "explain", "mysqlcluster.spec.storage")
	return err
}

func (d demo) waits(ctx context.Context) error {
	if err := d.clear(ctx); err != nil {
		return err
	}
	if _, err := d.kubectl.Apply(ctx, secret, "-n", namespace); err != nil {
		return err
	}
	if _, err := d.kubectl.Apply(ctx, withBackup, "-n", namespace); err != nil {
		return err
	}
	if err := d.condition(ctx, "False BackupNotFound", time.Minute); err != nil {
		return err
	}
	_, err := d.kubectl.Run(ctx, "get", "mc", "my-cluster", "-n", namespace, "-o", "wide")
	return err
}

// clear removes the cluster of an earlier demo and its data, which would hide what the demo shows. On a cluster that is not the dev cluster
// it removes nothing that a user may have created.
func (d demo) clear(ctx context.Context) error {
	const volumes = "app.kubernetes.io/instance=my-cluster"
	if !d.disposable {
		foreign, err := d.foreign(ctx, volumes)
		if err != nil {
			return err
		}
		if foreign != "" {
			return fmt.Errorf("namespace %s has objects that this demo did not create and would delete, with their data: %s: delete them, or use another cluster", namespace, foreign)
		}
	}
	if _, err := d.quiet.Run(ctx, "delete", "mysqlcluster", "my-cluster", "-n", namespace, "--ignore-not-found", "--wait"); err != nil {
		return err
	}
	_, err := d.quiet.Run(ctx, "delete", "pvc", "-n", namespace, "-l", volumes, "--wait")
	return err
}

// foreign returns the names of objects that the demo would delete and did not create; empty if there are none.
func (d demo) foreign(ctx context.Context, volumes string) (string, error) {
	own, err := d.quiet.Run(ctx, "get", "secret", "-n", namespace, "--field-selector", "metadata.name=my-secret", "-l", mark, "-o", "name")
	if err != nil || own != "" {
		return "", err
	}
	var found []string
	for _, arguments := range [][]string{
		{"secret", "my-secret", "--ignore-not-found"},
		{"mysqlcluster", "my-cluster", "--ignore-not-found"},
		{"pvc", "-l", volumes},
	} {
		names, err := d.quiet.Run(ctx, append([]string{"get", "-n", namespace, "-o", "name"}, arguments...)...)
		if err != nil {
			return "", err
		}
		found = append(found, strings.Fields(names)...)
	}
	return strings.Join(found, ", "), nil
}

func (d demo) ready(ctx context.Context) error {
	without := strings.ReplaceAll(withBackup, "  fromBackup: \"my-backup-2017-12-14-01-22\"\n", "")
	started := time.Now()
	if _, err := d.kubectl.Apply(ctx, without, "-n", namespace); err != nil {
		return err
	}
	if err := d.condition(ctx, "True AllMembersReady", 5*time.Minute); err != nil {
		_, _ = d.kubectl.Run(ctx, "describe", "mc", "my-cluster", "-n", namespace)
		return err
	}
	fmt.Printf("Ready after %.1f s\n", time.Since(started).Seconds())
	_, err := d.kubectl.Run(ctx, "get", "mc", "my-cluster", "-n", namespace)
	return err
}

// condition waits until the Ready condition has this status and reason. It prints each state on the way once.
func (d demo) condition(ctx context.Context, want string, limit time.Duration) error {
	last := ""
	return kube.Wait(ctx, "my-cluster to be "+want, limit, func(ctx context.Context) (bool, string) {
		seen, err := d.quiet.Run(ctx, "get", "mc", "my-cluster", "-n", namespace, "-o",
			`jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`)
		if err == nil && seen != last && len(seen) > len(" : ") {
			fmt.Println("  …", seen)
			last = seen
		}
		return strings.HasPrefix(seen, want), seen
	})
}

func (d demo) rows(ctx context.Context) error {
	if err := d.client(ctx); err != nil {
		return err
	}
	if _, err := d.mysql(ctx, "my-cluster", "CREATE DATABASE IF NOT EXISTS demo; CREATE TABLE IF NOT EXISTS demo.greeting (id INT AUTO_INCREMENT PRIMARY KEY, words VARCHAR(100)); INSERT INTO demo.greeting (words) VALUES ('hello from the primary'); SELECT @@hostname, COUNT(*) AS row_count FROM demo.greeting"); err != nil {
		return err
	}
	quiet := demo{kubectl: d.quiet, quiet: d.quiet}
	err := kube.Wait(ctx, "the row on the replica", 30*time.Second, func(ctx context.Context) (bool, string) {
		seen, err := quiet.mysql(ctx, "my-cluster-read", "SELECT words FROM demo.greeting")
		return err == nil && strings.Contains(seen, "hello from the primary"), seen
	})
	if err != nil {
		return err
	}
	seen, err := d.mysql(ctx, "my-cluster-read", "SELECT @@hostname, words, @@super_read_only FROM demo.greeting")
	if err != nil {
		return err
	}
	if !strings.Contains(seen, "hello from the primary") || !strings.Contains(seen, "my-cluster-1") {
		return fmt.Errorf("the read Service did not answer with the replica's row: %s", seen)
	}
	return nil
}

// client starts a Pod with a mysql client, as a user would.
func (d demo) client(ctx context.Context) error {
	if _, err := d.quiet.Run(ctx, "get", "pod", "mysql-client", "-n", namespace); err != nil {
		if _, err := d.kubectl.Run(ctx, "run", "mysql-client", "-n", namespace, "--image=mysql:latest", "--env=MYSQL_PWD="+password, "--command", "--", "tail", "-f", "/dev/null"); err != nil {
			return err
		}
	}
	_, err := d.kubectl.Run(ctx, "wait", "pod/mysql-client", "-n", namespace, "--for=condition=Ready", "--timeout=90s")
	return err
}

func (d demo) mysql(ctx context.Context, host, statement string) (string, error) {
	return d.kubectl.Run(ctx, "exec", "mysql-client", "-n", namespace, "--", "mysql", "-h", host, "-uroot", "--table", "-e", statement)
}

func (d demo) look(ctx context.Context) error {
	for _, arguments := range [][]string{
		{"get", "sts,svc,pvc,pod", "-n", namespace, "-l", "app.kubernetes.io/instance=my-cluster"},
		{"get", "mc", "my-cluster", "-n", namespace, "-o", `jsonpath={range .status.members[*]}{.name}{"\t"}{.role}{"\t"}{.state}{"\t"}{.message}{"\n"}{end}`},
		{"get", "pods", "-n", namespace, "-l", "app.kubernetes.io/instance=my-cluster", "-L", "cr.mysqloperator.grtl.github.com/role"},
	} {
		if _, err := d.kubectl.Run(ctx, arguments...); err != nil {
			return err
		}
	}
	return nil
}
