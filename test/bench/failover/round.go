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
	// calm is how long a cluster must have been settled: its status may be older than the last change.
	calm = 5 * time.Second
)

// round is what one fault did.
type round struct {
	fault, victim string
	// leader and epoch are those of the record afterwards.
	leader, epoch string
	// silent is the longest time without writes, further the second longest.
	silent, further silence
	// rejoin is from the end of the fault until the cluster was settled.
	rejoin time.Duration
}

// round inflicts a fault on the primary of a settled cluster, and waits until it is settled again.
func (b *bench) round(ctx context.Context, w *writer, fault string) (one round, err error) {
	victim, _, err := b.record(ctx)
	if err != nil {
		return one, err
	}
	one = round{fault: fault, victim: victim}
	former, err := machine.Proc.Processes(victim, mysqldProgram)
	if err != nil {
		return one, err
	}
	hit, err := b.strike(ctx, fault, victim)
	if err != nil {
		return one, errors.Join(err, hit.end())
	}
	ended, err := b.outlast(ctx, w, one, hit)
	if err != nil {
		return one, err
	}
	if err := b.awaitAnother(ctx, victim, former); err != nil {
		return one, err
	}
	settled, err := b.awaitSettled(ctx, w, ended)
	if err != nil {
		return one, err
	}
	one.rejoin = settled.Sub(ended)
	found := append(silences(w.seen(), hit.at), silence{}, silence{})
	one.silent, one.further = found[0], found[1]
	one.leader, one.epoch, err = b.record(ctx)
	return one, err
}

// outlast waits until clients write again, and ends the fault. It returns when the fault ended: a fault that needs no end has ended at
// once.
func (b *bench) outlast(ctx context.Context, w *writer, one round, hit struck) (time.Time, error) {
	err := kube.Wait(ctx, fmt.Sprintf("clients to write again after the fault %s of %s", one.fault, one.victim), writeLimit, func(context.Context) (bool, string) {
		count, _ := acknowledgedSince(w.seen(), hit.at)
		return count >= again, fmt.Sprintf("%d writes since", count)
	})
	ended := hit.at
	if one.fault == faultFreeze || one.fault == faultPartition {
		ended = time.Now()
	}
	return ended, errors.Join(err, hit.end())
}

// awaitAnother waits until a member has another mysqld: before that, the status may be the one from before the fault.
func (b *bench) awaitAnother(ctx context.Context, pod string, former []int) error {
	return kube.Wait(ctx, "another mysqld of "+pod, settleLimit, func(context.Context) (bool, string) {
		now, err := machine.Proc.Processes(pod, mysqldProgram)
		if err != nil {
			return false, err.Error()
		}
		return len(now) == 1 && !slices.Contains(former, now[0]), fmt.Sprintf("processes %v, were %v", now, former)
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
	seen, err := b.field(ctx, `{.status.conditions[?(@.type=="Ready")].reason} {.status.readySummary} {.status.requiredAcks} {.status.conditions[?(@.type=="Durable")].status} {.status.leaseSeconds}`)
	if err != nil {
		return false, err.Error()
	}
	return seen == fmt.Sprintf("AllMembersReady %d/%d %d True %d", members, members, members/2, replication.ShortLeaseSeconds), seen
}
