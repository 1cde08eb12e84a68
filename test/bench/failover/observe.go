package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-operator/mysql-operator/test/bench/failover/history"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

// checkLimit bounds how long the histories of one round are checked.
const checkLimit = 30 * time.Second

// observers are the clients of one round, apart from the writer.
type observers struct {
	registers *registers
	clients   []*registerClient
	readers   []*reader
	watchers  []*watcher
	faithful  *faithful
}

// observe starts the observers of a round, and waits until each has got an answer.
func (b *bench) observe(ctx context.Context, number int, victim string) (*observers, error) {
	of, err := makeRegisters(ctx, b.write, number)
	if err != nil {
		return nil, err
	}
	o := &observers{registers: of}
	for client := range registerClients {
		o.clients = append(o.clients, startRegisterClient(ctx, b.write, of, client, b.seed+uint64(number)))
	}
	o.readers = []*reader{startReader(ctx, b.reads, of, true), startReader(ctx, b.reads, of, false)}
	for ordinal := range members {
		db, err := b.openInside(b.member(ordinal))
		if err != nil {
			o.end()
			return nil, err
		}
		o.watchers = append(o.watchers, startWatcher(ctx, db, b.member(ordinal)))
	}
	db, err := b.openInside(victim)
	if err != nil {
		o.end()
		return nil, err
	}
	o.faithful = startFaithful(ctx, db)
	err = kube.Wait(ctx, "the observers to get answers", answerLimit, func(context.Context) (bool, string) { return o.haveAnswers() })
	if err != nil {
		o.end()
		return nil, err
	}
	return o, nil
}

// haveAnswers reports whether every observer has got an answer.
func (o *observers) haveAnswers() (isComplete bool, seen string) {
	counts := make([]int, 0, 1+len(o.clients)+len(o.readers)+len(o.watchers))
	counts = append(counts, len(o.faithful.seen()))
	for _, one := range o.clients {
		counts = append(counts, len(one.seen()))
	}
	for _, one := range o.readers {
		counts = append(counts, len(one.found.seen()))
	}
	for _, one := range o.watchers {
		counts = append(counts, len(one.seen()))
	}
	isComplete = true
	for _, count := range counts {
		isComplete = isComplete && count > 0
	}
	return isComplete, fmt.Sprintf("%v answers: the client of the primary, %d of registers, %d of replicas, one for each member", counts, len(o.clients), len(o.readers))
}

func (o *observers) end() {
	for _, one := range o.clients {
		one.end()
	}
	for _, one := range o.readers {
		one.end()
	}
	for _, one := range o.watchers {
		one.end()
	}
	if o.faithful != nil {
		o.faithful.end()
	}
}

// findings are what the observers of a round saw.
type findings struct {
	readGap    time.Duration
	operations int
	verdict    history.Verdict
	// violations are the operations on registers whose history is not linearizable.
	violations []history.Operation
	// unwritten are reads of values that no client wrote.
	unwritten []history.Operation
	stale     int
	dual      []overlap
}

// findings judges what was seen. The observers must have ended.
func (o *observers) findings(written []attempt, fault time.Time) findings {
	var f findings
	var operations []history.Operation
	for _, one := range o.clients {
		operations = append(operations, one.seen()...)
	}
	f.operations = len(operations)
	f.verdict = history.Check(operations, checkLimit)
	f.violations = history.Of(operations, f.verdict.Violated)
	var looks []look
	for _, one := range o.watchers {
		looks = append(looks, one.seen()...)
	}
	f.dual = overlaps(openSpans(looks), spanPause)
	f.stale = staleTips(o.faithful.seen(), written)
	for _, one := range o.readers {
		f.unwritten = append(f.unwritten, history.Unwritten(one.found.seen(), operations)...)
		if gaps := silences(one.attempts.seen(), fault); len(gaps) > 0 {
			f.readGap = max(f.readGap, gaps[0].length)
		}
	}
	return f
}
