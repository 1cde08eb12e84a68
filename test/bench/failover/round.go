package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
	"github.com/mysql-operator/mysql-operator/test/bench/machine"
	"github.com/mysql-operator/mysql-operator/test/kube"
)

const (
	// writeLimit bounds how long clients may be unable to write, and settleLimit how long a cluster may take. What takes longer is broken.
	writeLimit  = 4 * time.Minute
	settleLimit = 6 * time.Minute
	// again is how many acknowledged writes show that clients write again.
	again = 20
	// spared is how long a fault lasts after which no member may take over: longer than each time that the operator waits.
	spared = 40 * time.Second
	// calm is how long a cluster must have been settled: its status may be older than the last change.
	calm = 5 * time.Second
)

// state is who leads, and with which mysqld.
type state struct {
	leader, epoch string
	processes     []int
}

// round is what one fault did.
type round struct {
	number int
	fault  fault
	at     time.Time
	// before and after are from just before the fault, and from when the cluster was settled again.
	before, after state
	// isWithOperator means that the leading operator was on the primary's node.
	isWithOperator bool
	// silent is the longest time without writes, further the second longest.
	silent, further silence
	// rejoin is from the end of the fault until the cluster was settled.
	rejoin   time.Duration
	findings findings
	// isSettled means that all members came back by themselves.
	isSettled bool
}

// isFalse reports whether a member took over, or mysqld ended, after a fault that must not cause that.
func (r round) isFalse() bool {
	return r.fault.spares && r.isSettled && (r.before.leader != r.after.leader || r.before.epoch != r.after.epoch || !slices.Equal(r.before.processes, r.after.processes))
}

// round inflicts a fault on the primary of a settled cluster, and waits until it is settled again. It returns what it saw also with an
// error.
func (b *bench) round(ctx context.Context, w *writer, number int, inflicted fault) (one round, err error) {
	one = round{number: number, fault: inflicted, at: time.Now()}
	if one.before, err = b.state(ctx); err != nil {
		return one, err
	}
	if one.isWithOperator, err = b.isWithOperator(ctx, one.before.leader); err != nil {
		return one, err
	}
	o, err := b.observe(ctx, number, one.before.leader)
	if err != nil {
		return one, err
	}
	failed := b.endure(ctx, w, &one)
	o.end()
	written := w.seen()
	found := append(silences(written, one.at), silence{}, silence{})
	one.silent, one.further = found[0], found[1]
	one.findings = o.findings(written, one.at)
	return one, failed
}

// endure is the part of a round in which observers look.
func (b *bench) endure(ctx context.Context, w *writer, one *round) error {
	hit, err := one.fault.strike(b, ctx, one.before.leader)
	if err != nil {
		return errors.Join(err, hit.end())
	}
	one.at = hit.at
	ended, err := b.outlast(ctx, w, *one, hit)
	if err != nil {
		return err
	}
	if err := b.awaitEffect(ctx, *one); err != nil {
		return err
	}
	settled, err := b.awaitSettled(ctx, w, ended)
	if err != nil {
		return err
	}
	one.isSettled, one.rejoin = true, settled.Sub(ended)
	one.after, err = b.state(ctx)
	return err
}

// state reads who leads.
func (b *bench) state(ctx context.Context) (now state, err error) {
	if now.leader, now.epoch, err = b.record(ctx); err != nil {
		return now, err
	}
	now.processes, err = machine.Proc.Processes(now.leader, mysqldProgram)
	return now, err
}

func (b *bench) isWithOperator(ctx context.Context, primary string) (bool, error) {
	leading, err := b.leadingOperator(ctx)
	if err != nil {
		return false, err
	}
	node, err := b.nodeOf(ctx, primary)
	return node == leading.node, err
}

// outlast waits until clients write again, and ends the fault. It returns when the fault ended: a fault that needs no end has ended at
// once.
func (b *bench) outlast(ctx context.Context, w *writer, one round, hit struck) (time.Time, error) {
	var least time.Duration
	if one.fault.spares && one.fault.lasts {
		least = spared
	}
	what := fmt.Sprintf("clients to write again after the fault %s of %s", one.fault.name, one.before.leader)
	err := kube.Wait(ctx, what, writeLimit, func(context.Context) (bool, string) {
		count, _ := acknowledgedSince(w.seen(), hit.at)
		return count >= again && time.Since(hit.at) >= least, fmt.Sprintf("%d writes since", count)
	})
	if err != nil { // what there is during the fault says more than what there is after it
		err = errors.Join(err, b.describe(ctx, b.out))
	}
	ended := hit.at
	if one.fault.lasts {
		ended = time.Now()
	}
	return ended, errors.Join(err, hit.end())
}

// awaitEffect waits until the former primary has another mysqld: before that, the status may be the one from before the fault. Where the
// member may stay as it is, clients could write again only after the status had changed.
func (b *bench) awaitEffect(ctx context.Context, one round) error {
	if !one.fault.restarts {
		return nil
	}
	return kube.Wait(ctx, "another mysqld of "+one.before.leader, settleLimit, func(context.Context) (bool, string) {
		now, err := machine.Proc.Processes(one.before.leader, mysqldProgram)
		if err != nil {
			return false, err.Error()
		}
		return len(now) == 1 && !slices.Contains(one.before.processes, now[0]), fmt.Sprintf("processes %v, were %v", now, one.before.processes)
	})
}

// awaitSettled waits until the cluster has been settled for a while, and returns since when. Before it, every member must have a row that
// was written after a moment.
func (b *bench) awaitSettled(ctx context.Context, w *writer, moment time.Time) (since time.Time, err error) {
	err = kube.Wait(ctx, "the cluster to be settled", settleLimit, func(ctx context.Context) (bool, string) {
		isSettled, seen := b.settled(ctx)
		if !isSettled {
			since = time.Time{}
			return false, seen
		}
		if since.IsZero() {
			count, id := acknowledgedSince(w.seen(), moment)
			if count == 0 {
				return false, "no write was acknowledged"
			}
			now := time.Now()
			if err := b.allHave(ctx, id); err != nil {
				return false, err.Error()
			}
			since = now
		}
		return time.Since(since) >= calm, "settled for " + time.Since(since).String()
	})
	return since, err
}

// settled reports whether all members serve and acknowledge, and the primary has the lease of such a cluster.
func (b *bench) settled(ctx context.Context) (isSettled bool, seen string) {
	seen, err := b.field(ctx, `{.status.conditions[?(@.type=="Ready")].reason} {.status.readySummary} {.status.requiredAcks} {.status.conditions[?(@.type=="Durable")].status} {.status.leaseMilliseconds}`)
	if err != nil {
		return false, err.Error()
	}
	return seen == fmt.Sprintf("AllMembersReady %d/%d %d True %d", members, members, members/2, replication.ShortLease.Milliseconds()), seen
}
