package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/agent"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
)

const (
	mysqldProgram   = "mysqld"
	operatorProgram = "mysql-operator"
	// faultKill is the fault whose gap of reads is a figure.
	faultKill = "kill"
)

// fault is a way in which a primary fails.
type fault struct {
	name string
	// nodes is how many nodes it needs.
	nodes int
	// lasts means that it does not end by itself: the bench ends it when clients write again.
	lasts bool
	// spares means that no member may take over, and that mysqld may not end. If such a fault lasts, the bench ends it after a while.
	spares bool
	// restarts means that the member certainly gets another mysqld. Otherwise mysqld may stay as it is.
	restarts bool
	// once means that it is inflicted once, before all others: the product replaces no primary for it soon after another takeover.
	once bool
	// ownDisks means that each member's volume must be a file system of its own.
	ownDisks bool
	// operator is where the leading operator must be.
	operator whereabouts
	strike   func(*bench, context.Context, string) (struck, error)
}

// whereabouts is where the leading operator must be before a fault.
type whereabouts int

const (
	anywhere whereabouts = iota
	// elsewhere is another node than the primary's, beside is the same node.
	elsewhere
	beside
)

// struck is a fault that was inflicted at a moment. end ends what does not end by itself. It is never nil.
type struck struct {
	at  time.Time
	end func() error
}

// knownFaults are all faults, in the order in which they are inflicted by default.
func knownFaults() []fault {
	return []fault{
		{name: faultKill, restarts: true, strike: (*bench).kill},
		{name: "stop", restarts: true, strike: (*bench).stop}, // the member itself, or its Pod, must end it
		{name: "freeze", lasts: true, restarts: true, strike: (*bench).freeze},
		{name: "partition", lasts: true, restarts: true, strike: (*bench).partition},
		{name: "delete", restarts: true, strike: (*bench).deletePod},
		{name: "drain", restarts: true, strike: (*bench).drainPod},
		{name: "node", nodes: members, lasts: true, restarts: true, operator: elsewhere, strike: (*bench).killNode},
		{name: "node-operator", nodes: members, lasts: true, restarts: true, operator: beside, strike: (*bench).killNode},
		{name: "node-dns", nodes: members, lasts: true, restarts: true, operator: elsewhere, strike: (*bench).killNodeAndDNS},
		{name: "oneway-in", lasts: true, strike: (*bench).onewayIn},
		{name: "oneway-out", lasts: true, strike: (*bench).onewayOut},
		{name: "from-replicas", lasts: true, strike: (*bench).cutFromReplicas},
		{name: "from-operator", lasts: true, spares: true, strike: (*bench).cutFromOperators},
		{name: "blip", spares: true, strike: (*bench).partitionBriefly},
		{name: "pause", spares: true, strike: (*bench).freezeBriefly},
		{name: "operator", restarts: true, strike: (*bench).killWithOperator},
		{name: "operator-later", restarts: true, strike: (*bench).killThenOperator},
		{name: "disk-slow", spares: true, ownDisks: true, strike: (*bench).slowDisk},
		{name: "disk-hangs", lasts: true, ownDisks: true, strike: (*bench).hangDisk},
		{name: "disk-full", once: true, lasts: true, ownDisks: true, strike: (*bench).fillDisk},
	}
}

// faultsByDefault are those that need no file systems of their own.
func faultsByDefault() []fault {
	return slices.DeleteFunc(knownFaults(), func(one fault) bool { return one.ownDisks })
}

func needDisks(faults []fault) bool {
	return slices.ContainsFunc(faults, func(one fault) bool { return one.ownDisks })
}

func namesOf(faults []fault) string {
	names := make([]string, 0, len(faults))
	for _, one := range faults {
		names = append(names, one.name)
	}
	return strings.Join(names, ",")
}

// parseFaults reads a list of faults.
func parseFaults(list string) ([]fault, error) {
	known := knownFaults()
	var found []fault
	for name := range strings.SplitSeq(list, ",") {
		isNamed := func(one fault) bool { return one.name == name }
		if slices.ContainsFunc(found, isNamed) {
			return nil, fmt.Errorf("read flags: -faults has %q twice", name)
		}
		at := slices.IndexFunc(known, isNamed)
		if at < 0 {
			return nil, fmt.Errorf("read flags: -faults has %q; there are %s", name, namesOf(known))
		}
		found = append(found, known[at])
	}
	if needDisks(found) && slices.ContainsFunc(found, func(one fault) bool { return one.nodes > 0 }) {
		return nil, errors.New("read flags: -faults has a fault of a disk and one of a node: a node that starts again does not mount the disks again")
	}
	return found, nil
}

// schedule returns each fault so many times: in turn, or in an order that follows from the seed. Faults that are inflicted once come first.
func schedule(faults []fault, o options) []fault {
	var first, others []fault
	for _, one := range faults {
		if one.once {
			first = append(first, one)
		} else {
			others = append(others, one)
		}
	}
	all := slices.Repeat(others, o.rounds)
	if o.random {
		order := rand.New(rand.NewPCG(o.seed, 0))
		order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return slices.Concat(first, all)
}

func endsByItself() error { return nil }

func (b *bench) kill(_ context.Context, pod string) (struck, error) {
	at, err := signal(syscall.SIGKILL, running{pod, mysqldProgram})
	return struck{at, endsByItself}, err
}

func (b *bench) stop(_ context.Context, pod string) (struck, error) {
	at, err := signal(syscall.SIGSTOP, running{pod, mysqldProgram})
	return struck{at, endsByItself}, err
}

func (b *bench) freeze(_ context.Context, pod string) (struck, error) {
	all := []running{{pod, supervisor.Program}, {pod, mysqldProgram}, {pod, agent.Program}}
	at, err := signal(syscall.SIGSTOP, all...)
	return struck{at, func() error { return thaw(all) }}, err
}

// A brief fault is shorter than spec.failover.unreachableSeconds, which is 2 by default.
const shortestBrief, longestBrief = 200 * time.Millisecond, 1900 * time.Millisecond

func (b *bench) partitionBriefly(ctx context.Context, pod string) (struck, error) {
	return b.briefly(ctx, pod, (*bench).partition)
}

func (b *bench) freezeBriefly(ctx context.Context, pod string) (struck, error) {
	return b.briefly(ctx, pod, (*bench).freeze)
}

// briefly inflicts a fault for some random time.
func (b *bench) briefly(ctx context.Context, pod string, strike func(*bench, context.Context, string) (struck, error)) (struck, error) {
	hit, err := strike(b, ctx, pod)
	if err != nil {
		return hit, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(shortestBrief + rand.N(longestBrief-shortestBrief)):
	}
	return struck{hit.at, endsByItself}, hit.end()
}

func (b *bench) deletePod(ctx context.Context, pod string) (struck, error) {
	at := time.Now()
	_, err := b.kubectl.Run(ctx, "delete", "pod", pod, inNamespace, b.namespace, "--force", "--grace-period=0", "--wait=false")
	return struck{at, endsByItself}, err
}

// drainPod deletes a Pod as a drain does: with its grace period.
func (b *bench) drainPod(ctx context.Context, pod string) (struck, error) {
	at := time.Now()
	_, err := b.kubectl.Run(ctx, "delete", "pod", pod, inNamespace, b.namespace, "--wait=false")
	return struck{at, endsByItself}, err
}

// takeoverTime is about as long as a takeover takes after the end of mysqld.
const takeoverTime = 1500 * time.Millisecond

// killThenOperator kills mysqld, and at some moment of the takeover the process of the operator that leads.
func (b *bench) killThenOperator(ctx context.Context, pod string) (struck, error) {
	leader, err := b.leadingOperator(ctx)
	if err != nil {
		return struck{end: endsByItself}, err
	}
	at, err := signal(syscall.SIGKILL, running{pod, mysqldProgram})
	if err != nil {
		return struck{at, endsByItself}, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(takeoverTime)):
	}
	_, err = signal(syscall.SIGKILL, running{leader.name, operatorProgram})
	return struck{at, endsByItself}, err
}

// killWithOperator kills mysqld, and at the same moment the process of the operator that leads.
func (b *bench) killWithOperator(ctx context.Context, pod string) (struck, error) {
	leader, err := b.leadingOperator(ctx)
	if err != nil {
		return struck{end: endsByItself}, err
	}
	at, err := signal(syscall.SIGKILL, running{leader.name, operatorProgram}, running{pod, mysqldProgram})
	return struck{at, endsByItself}, err
}

// running is a program in a Pod.
type running struct{ pod, program string }

func (r running) processes() ([]int, error) {
	found, err := machine.Proc.Processes(r.pod, r.program)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("find %s: no such process of Pod %s runs on this machine", r.program, r.pod)
	}
	return found, err
}

// signal sends a signal to programs, in their order. It returns the moment just before the first signal: to find the processes takes some
// milliseconds.
func signal(number syscall.Signal, programs ...running) (time.Time, error) {
	var all []int
	for _, one := range programs {
		found, err := one.processes()
		if err != nil {
			return time.Time{}, err
		}
		all = append(all, found...)
	}
	at := time.Now()
	for _, process := range all {
		if err := syscall.Kill(process, number); err != nil {
			return at, fmt.Errorf("send %s to process %d, one of %v: %w", number, process, programs, err)
		}
	}
	return at, nil
}

// thaw lets programs continue. Some may have ended: the supervisor, once it runs, ends mysqld.
func thaw(programs []running) error {
	var failures []error
	for _, one := range programs {
		found, err := machine.Proc.Processes(one.pod, one.program)
		failures = append(failures, err)
		for _, process := range found {
			if err := syscall.Kill(process, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
				failures = append(failures, fmt.Errorf("let process %d of Pod %s continue: %w", process, one.pod, err))
			}
		}
	}
	return errors.Join(failures...)
}
