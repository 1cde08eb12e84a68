package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	// operatorNamespace is where the bench starts an operator if none runs, as in the README.
	operatorNamespace = "default"
	operatorLimit     = 3 * time.Minute
	answerLimit       = time.Minute
	removeLimit       = 4 * time.Minute
	password          = "bench-Passw0rd"
	members           = 3
	database          = "bench"
	table             = database + ".numbers"
	inNamespace       = "--namespace" // of kubectl
)

// bench is a namespace with a cluster, whose name differs from those of other runs on this machine.
type bench struct {
	out                io.Writer
	floor              floor
	seed               uint64
	kubectl            kube.Kubectl
	objects            kube.Objects
	namespace, cluster string
	// operatorHome is the operator's namespace.
	operatorHome string
	// disks are the members' own file systems, if a fault needs them.
	disks []disk
	// authorities are what clients trust.
	authorities *x509.CertPool
	// write and reads are the databases behind the Services NAME and NAME-read.
	write, reads *sql.DB
}

func setUp(ctx context.Context, o options, faults []fault, out io.Writer) (*bench, error) {
	kubectl, err := kube.FromEnvironment()
	if err != nil {
		return nil, err
	}
	objects, err := kubectl.Objects()
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, operatorLimit)
	defer cancel()
	home, err := kube.EnsureOperator(starting, kubectl, kube.OperatorFromEnvironment(operatorNamespace), o.keepOperator, out)
	if err != nil {
		return nil, err
	}
	suffix := strings.ToLower(rand.Text()[:6])
	b := &bench{
		out: out, seed: o.seed, kubectl: kubectl, objects: objects, operatorHome: home,
		namespace: "bench-" + suffix, cluster: "f" + suffix,
	}
	if _, err := kubectl.Run(ctx, "create", "namespace", b.namespace); err != nil {
		return nil, err
	}
	if needDisks(faults) {
		err = b.makeDisks(ctx)
	}
	if err == nil {
		err = b.create(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.describe(ctx, out), b.tearDown(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// create makes the cluster and waits until it is settled. Its mysqlds are small, as those of the end-to-end tests.
func (b *bench) create(ctx context.Context) error {
	if _, err := b.kubectl.Run(ctx, "create", "secret", "generic", "root", inNamespace, b.namespace, "--from-literal=password="+password); err != nil {
		return err
	}
	manifest := fmt.Sprintf("apiVersion: cr.mysqloperator.grtl.github.com/v1\nkind: MySQLCluster\nmetadata: {name: %s}\nspec:\n  secret: root\n  replicas: %d\n  resources: {requests: {memory: 128Mi}, limits: {memory: 512Mi}}\n", b.cluster, members)
	if len(b.disks) > 0 {
		manifest += "  storageClassName: " + b.namespace + "\n"
	}
	if _, err := b.kubectl.Apply(ctx, manifest, inNamespace, b.namespace); err != nil {
		return err
	}
	err := kube.Wait(ctx, "the new cluster to be settled", settleLimit, b.settled)
	if err != nil {
		return err
	}
	bundle, err := b.read(ctx, "configmaps", b.cluster+"-ca-cert", `{.data.ca\.crt}`)
	if err != nil {
		return err
	}
	b.authorities = x509.NewCertPool()
	if !b.authorities.AppendCertsFromPEM([]byte(bundle)) {
		return fmt.Errorf("read the CA of %s: ConfigMap %s-ca-cert has no certificate", b.cluster, b.cluster)
	}
	return nil
}

// describe prints what there is, for whoever looks for the cause of an error.
func (b *bench) describe(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	commands := [][]string{
		{"get", "mysqlclusters,pods", inNamespace, b.namespace, "--output", "wide"},
		{"get", "mysqlclusters", inNamespace, b.namespace, "--output", "yaml"},
		{"get", "events", inNamespace, b.namespace, "--sort-by=.lastTimestamp"},
	}
	operators, err := b.operators(ctx)
	if err != nil {
		return err
	}
	for _, one := range operators {
		commands = append(commands, []string{"logs", one.name, inNamespace, b.operatorHome, "--tail=200"})
	}
	for _, arguments := range commands {
		text, err := b.kubectl.Run(ctx, arguments...)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nkubectl %s\n%s", strings.Join(arguments, " "), text)
	}
	return nil
}

// tearDown removes the namespace with everything in it. The operator stays, as after make demo. The members end first: Kubernetes looks at
// a namespace that ends only after a part of its Pods' grace period, which is minutes.
func (b *bench) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	_, gone := b.kubectl.Run(ctx, "delete", "mysqlclusters", "--all", inNamespace, b.namespace, "--wait=false")
	_, ended := b.kubectl.Run(ctx, "wait", "pods", "--all", "--for=delete", inNamespace, b.namespace, "--timeout=120s")
	_, err := b.kubectl.Run(ctx, "delete", "namespace", b.namespace, "--wait", "--ignore-not-found")
	return errors.Join(gone, ended, err, b.removeDisks(ctx))
}

// field reads a field of the cluster resource.
func (b *bench) field(ctx context.Context, path string) (string, error) {
	kind := schema.GroupVersionResource{Group: "cr.mysqloperator.grtl.github.com", Version: "v1", Resource: "mysqlclusters"}
	return b.objects.Field(ctx, kind, b.namespace, b.cluster, path)
}

// read reads a field of one of Kubernetes' own objects.
func (b *bench) read(ctx context.Context, plural, name, path string) (string, error) {
	return b.objects.Field(ctx, schema.GroupVersionResource{Version: "v1", Resource: plural}, b.namespace, name, path)
}

// record returns the primary and the epoch.
func (b *bench) record(ctx context.Context) (primary, epoch string, err error) {
	seen, err := b.field(ctx, "{.status.primary} {.status.epoch}")
	if err != nil {
		return "", "", err
	}
	primary, epoch, _ = strings.Cut(seen, " ")
	if primary == "" {
		return "", "", fmt.Errorf("read the record of %s: its status names no primary", b.cluster)
	}
	return primary, epoch, nil
}

// addressOf reads the address of a Pod.
func (b *bench) addressOf(ctx context.Context, namespace, name string) (string, error) {
	address, err := b.objects.Field(ctx, podKind(), namespace, name, "{.status.podIP}")
	if err == nil && address == "" {
		err = fmt.Errorf("read the address of Pod %s: it has none", name)
	}
	return address, err
}

// clientUser is the account of clients, which has no rights but to the tables, as an application's.
const clientUser = "client"

// connect makes what clients write to, and connects to the Services as a client.
func (b *bench) connect(ctx context.Context) (err error) {
	root, err := b.openService(ctx, b.cluster, "root")
	if err != nil {
		return err
	}
	defer root.Close()
	if err := makeTables(ctx, root); err != nil {
		return err
	}
	if b.write, err = b.openService(ctx, b.cluster, clientUser); err != nil {
		return err
	}
	if b.reads, err = b.openService(ctx, b.cluster+"-read", clientUser); err != nil {
		b.disconnect()
	}
	return err
}

func (b *bench) disconnect() {
	for _, db := range []*sql.DB{b.write, b.reads} {
		if db != nil {
			_ = db.Close() // never fails: it has no idle connections
		}
	}
}

// openService connects to a Service, and waits for an answer: nodes hear of a new endpoint a moment after the cluster is Ready.
func (b *bench) openService(ctx context.Context, name, user string) (*sql.DB, error) {
	address, err := b.read(ctx, "services", name, "{.spec.clusterIP}:{.spec.ports[0].port}")
	if err != nil {
		return nil, err
	}
	config := b.config(address)
	config.User = user
	db, err := openDB(config)
	if err != nil {
		return nil, err
	}
	return db, kube.Wait(ctx, "a server behind the Service "+name, answerLimit, func(ctx context.Context) (bool, string) {
		err := db.PingContext(ctx)
		return err == nil, fmt.Sprint(err)
	})
}

// config connects as root to an address of the cluster, over TLS with the server's name verified.
func (b *bench) config(address string) *driver.Config {
	config := driver.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = "root", password, "tcp", address
	config.Timeout, config.WriteTimeout = dialLimit, statementLimit
	config.TLS = &tls.Config{RootCAs: b.authorities, ServerName: b.cluster + "." + b.namespace + ".svc", MinVersion: tls.VersionTLS12}
	config.Logger = &driver.NopLogger{}
	return config
}

// openDB makes a database that keeps no idle connections.
func openDB(config *driver.Config) (*sql.DB, error) {
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Addr, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(-1)
	return db, nil
}
