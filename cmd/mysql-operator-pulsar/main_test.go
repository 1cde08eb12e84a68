//go:build !without_pulsar

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/mysql-operator/mysql-operator/test/pulsarbroker"
)

// output is a buffer that one goroutine writes and another reads.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(line)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run runs a subcommand; environment is a list of NAME=VALUE.
func run(ctx context.Context, out *output, environment []string, arguments ...string) error {
	return runAs(ctx, "/usr/bin/mysql-operator-pulsar", out, environment, arguments...)
}

// runAs is run with another program name.
func runAs(ctx context.Context, program string, out *output, environment []string, arguments ...string) error {
	read := func(name string) string {
		for _, one := range environment {
			if key, value, _ := strings.Cut(one, "="); key == name {
				return value
			}
		}
		return ""
	}
	return execute(ctx, process{program: program, arguments: arguments, environment: read, out: out, err: out})
}

// shows waits until the output contains all words.
func shows(t *testing.T, out *output, words ...string) {
	t.Helper()
	deadline, look := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer look.Stop()
	for {
		said, missing := out.String(), ""
		for _, word := range words {
			if !strings.Contains(said, word) {
				missing = word
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%q is not in:\n%s", missing, said)
		case <-look.C:
		}
	}
}

// TestWalkThroughOfTheFoundingDocument sends the document's message with the document's environment, and finds it in the consumer's log.
func TestWalkThroughOfTheFoundingDocument(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broker := pulsarbroker.New().Serve(listener, nil)
	t.Cleanup(func() { _ = broker.Stop() })

	ctx, stop := context.WithCancel(t.Context())
	consumed, ended := &output{}, make(chan error, 1)
	go func() {
		ended <- run(ctx, consumed, []string{"PULSAR_SERVER=" + broker.URL(), "PULSAR_TOPIC=my-topic", "PULSAR_SUBSCRIPTION_NAME=my-subscription"}, "consume", "--health-address=127.0.0.1:0")
	}()
	shows(t, consumed, `"msg":"subscribed"`)

	produced := &output{}
	if err := run(t.Context(), produced, []string{"PULSAR_SERVER=" + broker.URL(), "PULSAR_MESSAGE=Sample Message", "PULSAR_TOPIC=my-topic"}, "produce"); err != nil {
		t.Fatal(err)
	}
	shows(t, produced, "sent to my-topic as 1:0:", ": Sample Message\n")
	shows(t, consumed, `"level":"info","msg":"message","payload":"Sample Message","id":"1:0:`)

	t.Log("by the name of the document")
	again := &output{}
	if err := runAs(t.Context(), "bin/pulsar-producer", again, []string{"PULSAR_SERVER=" + broker.URL(), "PULSAR_MESSAGE=Another Message", "PULSAR_TOPIC=my-topic"}); err != nil {
		t.Fatal(err)
	}
	shows(t, again, "sent to my-topic as 1:1:", ": Another Message\n")
	shows(t, consumed, `"payload":"Another Message"`)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	shows(t, consumed, `"msg":"stopped"`)
}

func TestCommandLinesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for story, test := range map[string]struct {
		arguments []string
		says      string
	}{
		"nothing":            {nil, "use consume or produce"},
		"another subcommand": {[]string{"eat"}, `no subcommand "eat"`},
		"an argument":        {[]string{"consume", "it"}, `takes no argument "it"`},
		"an unknown flag":    {[]string{"consume", "--fast"}, "unknown flag"},
		"a format":           {[]string{"consume", "--log-format=xml"}, "use json or console"},
		"nothing to send":    {[]string{"produce", "--server=pulsar://a", "--topic=t"}, "produce needs PULSAR_MESSAGE"},
		"never":              {[]string{"produce", "--message=m", "--count=0"}, "--count of 1 or more"},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), &output{}, nil, test.arguments...)
			if err == nil || !strings.Contains(err.Error(), test.says) || !errors.Is(err, errUsage) {
				t.Errorf("the error is %v, want %q", err, test.says)
			}
		})
	}
}

func TestTheProducersNameTakesItsFlags(t *testing.T) {
	t.Parallel()
	out := &output{}
	if err := runAs(t.Context(), "pulsar-producer", out, nil, "--help"); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
	shows(t, out, "Sends a message", "--count")
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), &output{}, []string{"PULSAR_SERVER=pulsar://a"}, "consume", "--health-address=")
	if err == nil || !strings.Contains(err.Error(), "PULSAR_TOPIC") {
		t.Errorf("the error is %v", err)
	}
}

// TestTheCollectorKnowsThePodsMemory: otherwise Go would let garbage grow to the size of the messages in memory.
func TestTheCollectorKnowsThePodsMemory(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]int64{"": 192 << 20, "100MiB": 0} {
		environment := func(string) string { return limit }
		if got := softLimit(environment); got != want {
			t.Errorf("with GOMEMLIMIT=%q it sets %d", limit, got)
		}
	}
	_ = run(t.Context(), &output{}, nil, "consume", "--health-address=")
	if got := debug.SetMemoryLimit(-1); got != 192<<20 {
		t.Errorf("a consumer collects garbage from %d bytes on", got)
	}
}

func TestHelpNamesTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"consume", "produce"} {
		out := &output{}
		if err := run(t.Context(), out, nil, name, "--help"); !errors.Is(err, pflag.ErrHelp) {
			t.Errorf("%s --help: %v", name, err)
		}
		shows(t, out, "usage: mysql-operator "+name, "PULSAR_SERVER", "PULSAR_TOPIC")
	}
}
