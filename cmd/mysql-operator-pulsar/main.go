//go:build !without_pulsar

// Command mysql-operator-pulsar connects to Apache Pulsar. mysql-operator executes it for its subcommands consume and produce. It is a
// separate program, so that neither the operator nor its agents are linked with the client library.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // public CAs, for systems without any: the image contains only programs

	"github.com/mysql-operator/mysql-operator/listen"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer/podenv"
	"github.com/mysql-operator/mysql-operator/reconcile/kinds/pulsarconsumer/pulsar"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := execute(ctx, process{program: os.Args[0], arguments: os.Args[1:], environment: os.Getenv, out: os.Stdout, err: os.Stderr})
	stop()
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return
	}
	// The library joins the errors of several attempts with line breaks.
	fmt.Fprintf(os.Stderr, "mysql-operator: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// process is what a subcommand gets from its process.
type process struct {
	// program is the name or path by which it was called.
	program     string
	arguments   []string
	environment func(name string) string
	out, err    io.Writer
}

var errUsage = errors.New("see --help")

// producerName is a name of this program with which it runs produce: the founding document calls the producer that. make build makes a link
// with this name.
const producerName = "pulsar-producer"

func execute(ctx context.Context, p process) error {
	if filepath.Base(p.program) == producerName {
		return produce(ctx, p)
	}
	if len(p.arguments) == 0 {
		return fmt.Errorf("use consume or produce: %w", errUsage)
	}
	name := p.arguments[0]
	p.arguments = p.arguments[1:]
	switch name {
	case podenv.ConsumeCommand:
		return consume(ctx, p)
	case "produce":
		return produce(ctx, p)
	default:
		return fmt.Errorf("no subcommand %q, use consume or produce: %w", name, errUsage)
	}
}

// options are the flags of both subcommands.
type options struct {
	flags    *pflag.FlagSet
	settings pulsar.Settings
	debug    bool
	format   string
}

func newOptions(usage, what string, p process) *options {
	o := &options{flags: pflag.NewFlagSet("mysql-operator "+usage, pflag.ContinueOnError), settings: pulsar.FromEnvironment(p.environment)}
	o.flags.SortFlags = false
	o.flags.SetOutput(p.out)
	o.flags.Usage = func() {
		fmt.Fprintf(p.out, "usage: mysql-operator %s\n\n%s\n\n%s", usage, strings.TrimSpace(what), o.flags.FlagUsages())
	}
	o.text(&o.settings.Server, "server", podenv.Server, "service URL, pulsar://host:6650 or pulsar+ssl://host:6651")
	o.text(&o.settings.Topic, "topic", podenv.Topic, "topic")
	o.text(&o.settings.Credentials, "credentials", podenv.Credentials, "folder with the files token, ca.crt, tls.crt and tls.key, each if needed")
	return o
}

// text registers a flag whose value can also come from the environment; the flag has priority.
func (o *options) text(into *string, name, variable, meaning string) {
	o.flags.StringVar(into, name, *into, meaning+" (environment "+variable+")")
}

func (o *options) parse(p process) error {
	o.flags.StringVar(&o.format, "log-format", "json", "json or console")
	o.flags.BoolVar(&o.debug, "debug", false, "also log what the client library does")
	if err := o.flags.Parse(p.arguments); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return errors.Join(err, errUsage)
	}
	if o.flags.NArg() > 0 {
		return fmt.Errorf("%s takes no argument %q: %w", o.flags.Name(), strings.Join(o.flags.Args(), " "), errUsage)
	}
	if o.format != "json" && o.format != "console" {
		return fmt.Errorf("--log-format=%s: use json or console: %w", o.format, errUsage)
	}
	return nil
}

func (o *options) logger(out io.Writer) *slog.Logger {
	chosen := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: readable}
	if o.debug {
		chosen.Level = slog.LevelDebug
	}
	if o.format == "console" {
		return slog.New(slog.NewTextHandler(out, chosen))
	}
	return slog.New(slog.NewJSONHandler(out, chosen))
}

// readable writes levels as the operator's log does, and the library's addresses as text.
func readable(groups []string, attribute slog.Attr) slog.Attr {
	if len(groups) == 0 && attribute.Key == slog.LevelKey {
		attribute.Value = slog.StringValue(strings.ToLower(attribute.Value.String()))
	}
	switch value := attribute.Value.Any().(type) {
	case *url.URL:
		attribute.Value = slog.StringValue(value.Redacted())
	case net.Addr:
		attribute.Value = slog.StringValue(value.String())
	}
	return attribute
}

// softLimit returns the memory limit, in bytes, at which Go collects garbage at once. It is three quarters of the Pod's limit, because Go's
// limit is not a hard one (Go, "A Guide to the Go Garbage Collector"). It is 0 if the user has set GOMEMLIMIT.
func softLimit(environment func(name string) string) int64 {
	if environment("GOMEMLIMIT") != "" {
		return 0
	}
	return podenv.Memory / 4 * 3
}

func consume(ctx context.Context, p process) error {
	o := newOptions("consume [flags]", `Consumes a topic of Apache Pulsar: logs each message on standard output and acknowledges it, until it receives SIGINT or SIGTERM.`, p)
	o.text(&o.settings.Subscription, "subscription", podenv.Subscription, "subscription, of type Shared")
	o.text(&o.settings.Consumer, "name", podenv.Consumer, "name of this consumer in the subscription")
	address := o.flags.String("health-address", fmt.Sprint(":", podenv.HealthPort), "address to serve "+podenv.ReadyPath+" on; empty: do not serve it")
	if err := o.parse(p); err != nil {
		return err
	}
	if limit := softLimit(p.environment); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	consumer := &pulsar.Consumer{Settings: o.settings, Log: o.logger(p.out)}
	if *address == "" {
		return consumer.Run(ctx)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", *address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", *address, err)
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() { served <- listen.Server{Handler: consumer.Handler()}.Serve(serving, listener) }()
	err = consumer.Run(ctx)
	stop()
	return errors.Join(err, <-served)
}

func produce(ctx context.Context, p process) error {
	o := newOptions("produce [flags]", `Sends a message to a topic of Apache Pulsar, to try a consumer:

  env PULSAR_SERVER=pulsar://localhost:6650 PULSAR_MESSAGE="Sample Message" PULSAR_TOPIC="my-topic" mysql-operator produce`, p)
	message := p.environment(podenv.Message)
	o.text(&message, "message", podenv.Message, "message to send")
	count := o.flags.Int("count", 1, "how many times to send it")
	if err := o.parse(p); err != nil {
		return err
	}
	if message == "" || *count < 1 {
		return fmt.Errorf("produce needs %s or --message, and a --count of 1 or more: %w", podenv.Message, errUsage)
	}
	// Lines about sent messages go to standard output, the library's log lines to standard error.
	sent := func(id string) { fmt.Fprintf(p.out, "sent to %s as %s: %s\n", o.settings.Topic, id, message) }
	return pulsar.Produce(ctx, o.settings, o.logger(p.err), pulsar.ProduceOptions{Message: []byte(message), Count: *count, Sent: sent})
}
