package main

import (
	"context"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/supervisor"
)

// partition drops all packets from and to a member.
func (b *bench) partition(ctx context.Context, pod string) (struck, error) {
	return b.drop(ctx, pod, [][]string{allIn(), allOut()})
}

// onewayIn drops all packets to a member. What it sends arrives.
func (b *bench) onewayIn(ctx context.Context, pod string) (struck, error) {
	return b.drop(ctx, pod, [][]string{allIn()})
}

// onewayOut drops all packets from a member. It gets what others send.
func (b *bench) onewayOut(ctx context.Context, pod string) (struck, error) {
	return b.drop(ctx, pod, [][]string{allOut()})
}

func (b *bench) drop(ctx context.Context, pod string, packets [][]string) (struck, error) {
	own, err := networkOf(pod, supervisor.Program)
	if err != nil {
		return struck{end: endsByItself}, err
	}
	return strikeCuts(ctx, []cut{{own, packets}})
}

func strikeCuts(ctx context.Context, cuts []cut) (struck, error) {
	at := time.Now()
	end, err := inflict(ctx, cuts)
	return struck{at, end}, err
}

// cutFromReplicas cuts a member off from all other members, and from nothing else.
func (b *bench) cutFromReplicas(ctx context.Context, pod string) (struck, error) {
	others := make([]peer, 0, members)
	for ordinal := range members {
		if name := b.member(ordinal); name != pod {
			one, err := b.peer(ctx, b.namespace, name, supervisor.Program)
			if err != nil {
				return struck{end: endsByItself}, err
			}
			others = append(others, one)
		}
	}
	return b.cutFrom(ctx, pod, others)
}

// cutFromOperators cuts a member off from every Pod of the operator, and from nothing else.
func (b *bench) cutFromOperators(ctx context.Context, pod string) (struck, error) {
	found, err := b.operators(ctx)
	if err != nil {
		return struck{end: endsByItself}, err
	}
	others := make([]peer, 0, len(found))
	for _, one := range found {
		others = append(others, peer{one.name, one.address, operatorProgram})
	}
	return b.cutFrom(ctx, pod, others)
}

// peer is a Pod, its address, and a program that runs in it.
type peer struct{ name, address, program string }

func (b *bench) peer(ctx context.Context, namespace, name, program string) (peer, error) {
	address, err := b.addressOf(ctx, namespace, name)
	return peer{name, address, program}, err
}

// cutFrom cuts a member off from others. Both sides drop packets: a Pod that connects to a Service sends to the address of the Service, but
// its packets arrive with its own address.
func (b *bench) cutFrom(ctx context.Context, pod string, others []peer) (struck, error) {
	own, err := b.peer(ctx, b.namespace, pod, supervisor.Program)
	if err != nil {
		return struck{end: endsByItself}, err
	}
	var cuts []cut
	drop := func(in peer, address string) error {
		place, err := networkOf(in.name, in.program)
		if err == nil {
			cuts = append(cuts, cut{place, between(address)})
		}
		return err
	}
	for _, other := range others {
		if err := drop(own, other.address); err != nil {
			return struck{end: closing(cuts)}, err
		}
		if err := drop(other, own.address); err != nil {
			return struck{end: closing(cuts)}, err
		}
	}
	return strikeCuts(ctx, cuts)
}

// closing ends cuts that were not made.
func closing(cuts []cut) func() error {
	return func() error {
		for _, one := range cuts {
			one.place.close()
		}
		return nil
	}
}
