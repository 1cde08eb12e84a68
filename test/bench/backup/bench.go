package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	operatorNamespace = "default"
	password          = "bench-Passw0rd"
	source            = "source"
	stepLimit         = 30 * time.Minute
)

// bench is a namespace to work in.
type bench struct {
	options   options
	kubectl   kube.Kubectl
	namespace string
	// scratch is a folder for dumps.
	scratch string
}

func setUp(ctx context.Context, o options, out io.Writer) (*bench, error) {
	kubectl, err := kube.FromEnvironment()
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "bench-backup-")
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, kubectl: kubectl, namespace: "bench-" + strings.ToLower(rand.Text()[:6]), scratch: scratch}
	if err := kube.DeleteDeployedOperators(ctx, kubectl); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	fmt.Fprintln(out, "operator: starting the one that was built")
	if err := kube.OperatorFromEnvironment(operatorNamespace).Run(ctx, kubectl); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	_, err = kubectl.Run(ctx, "create", "namespace", b.namespace)
	if err == nil {
		_, err = kubectl.Run(ctx, "create", "secret", "generic", "root", "--namespace", b.namespace, "--from-literal=password="+password)
	}
	if err != nil {
		return nil, errors.Join(err, b.tearDown(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// tearDown removes the namespace with everything in it. The operator stays, as after make demo.
func (b *bench) tearDown(ctx context.Context) error {
	_, err := b.kubectl.Run(ctx, "delete", "namespace", b.namespace, "--wait", "--ignore-not-found")
	return errors.Join(err, os.RemoveAll(b.scratch))
}

// settings give every server of the run the same memory and redo log, and its share of the CPU, as whoever has clients to serve does: a
// backup's Pod asks for none.
const settings = "  config: {innodb_buffer_pool_size: 512M, innodb_redo_log_capacity: 1G}\n  resources: {requests: {cpu: 400m}}\n"

// cluster makes a cluster and waits until it is Ready.
func (b *bench) cluster(ctx context.Context, name string, replicas int) error {
	if err := b.apply(ctx, name, replicas); err != nil {
		return err
	}
	return b.ready(ctx, name, replicas)
}

func (b *bench) apply(ctx context.Context, name string, replicas int, lines ...string) error {
	manifest := fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLCluster\nmetadata: {name: %s}\nspec:\n  secret: root\n  replicas: %d\n  storage: 16Gi\n", name, replicas) + settings
	if len(lines) > 0 {
		manifest += "  " + strings.Join(lines, "\n  ") + "\n"
	}
	_, err := b.kubectl.Apply(ctx, manifest, "--namespace", b.namespace)
	return err
}

func (b *bench) ready(ctx context.Context, name string, replicas int) error {
	ready := fmt.Sprintf("True %d/%d", replicas, replicas)
	return b.watch(ctx, "mysqlclusters/"+name, `{.status.conditions[?(@.type=="Ready")].status} {.status.readySummary}`, func(seen string) bool { return seen == ready })
}

// removeSource deletes the source with its data; the backups stay.
func (b *bench) removeSource(ctx context.Context, _ *measured) error { return b.remove(ctx, source) }

// watch waits until fields of an object are what they should be.
func (b *bench) watch(ctx context.Context, object, path string, done func(seen string) bool) error {
	return b.kubectl.Watch(ctx, object+" "+path, stepLimit, done, object, "--namespace", b.namespace, "--output", "jsonpath="+path+`{"\n"}`)
}

func (b *bench) get(ctx context.Context, object, path string) (string, error) {
	return b.kubectl.Run(ctx, "get", object, "--namespace", b.namespace, "--output", "jsonpath="+path)
}

// remove deletes a cluster with its data.
func (b *bench) remove(ctx context.Context, name string) error {
	if _, err := b.kubectl.Run(ctx, "delete", "mysqlcluster", name, "--namespace", b.namespace); err != nil {
		return err
	}
	members := "app.kubernetes.io/name=mysql,app.kubernetes.io/instance=" + name
	if _, err := b.kubectl.Run(ctx, "wait", "pods", "--for=delete", "--namespace", b.namespace, "--selector", members, "--timeout=180s"); err != nil {
		return err
	}
	_, err := b.kubectl.Run(ctx, "delete", "persistentvolumeclaims", "--namespace", b.namespace, "--selector", members)
	return err
}

// address is where a Service listens.
func (b *bench) address(ctx context.Context, service string) (string, error) {
	return b.get(ctx, "services/"+service, "{.spec.clusterIP}")
}

// open connects to a cluster as root.
func (b *bench) open(ctx context.Context, cluster, service string) (*sql.DB, error) {
	host, err := b.address(ctx, service)
	if err != nil {
		return nil, err
	}
	encoded, err := b.get(ctx, "secrets/"+cluster+"-tls", `{.data.ca\.crt}`)
	if err != nil {
		return nil, err
	}
	ca, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := driver.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = "root", password, "tcp", host+":3306"
	config.TLS = &tls.Config{RootCAs: pool, ServerName: service + "." + b.namespace + ".svc", MinVersion: tls.VersionTLS12}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	// Nodes hear of a Service's new member a moment after the cluster is Ready.
	return db, kube.Wait(ctx, service+" to answer", time.Minute, func(ctx context.Context) (bool, string) {
		err := db.PingContext(ctx)
		return err == nil, fmt.Sprint(err)
	})
}
