package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/mysql-operator/mysql-operator/reconcile/mysql/mysqld"
	"github.com/mysql-operator/mysql-operator/reconcile/mysql/replication"
)

// clone replaces the data with a copy of the donor's that the operator has named, or of the primary's. NextStep has just verified with the
// primary that it has every transaction of this member, except for those that the agent has set aside. From now on this member's data does
// not count, so that an interrupted copy simply starts again.
func (a *Agent) clone(ctx context.Context, local replication.Observed) error {
	assignment := *local.Assignment
	donor := assignment.Donor
	name := assignment.Record.Primary
	if donor != nil {
		name = donor.Name
	}
	if err := a.copies.wait(time.Now(), name); err != nil {
		if donor != nil && !a.copies.isThrough {
			a.triedDonor(donor) // another one, or the primary, need not wait for it
		}
		return err
	}
	a.begins()
	err := a.copyFrom(ctx, local)
	if donor == nil && mysqld.IsDonorBusy(err) {
		return fmt.Errorf("the primary is sending a copy to another member; the agent tries again")
	}
	a.triedDonor(donor)
	if mysqld.IsDonorBusy(err) {
		err = fmt.Errorf("%s is sending a copy to another recipient", name)
	}
	return a.copies.ended(time.Now(), name, err)
}

// copyFrom makes one attempt.
func (a *Agent) copyFrom(ctx context.Context, local replication.Observed) error {
	assignment := *local.Assignment
	host, address, port, uuid := assignment.SourceHost, assignment.SourceAddress, assignment.SourcePort, ""
	if donor := assignment.Donor; donor != nil {
		if err := a.checkDonor(ctx, local); err != nil {
			return fmt.Errorf("%s is not fit to be copied: %w", donor.Name, err)
		}
		host, address, port, uuid = donor.Host, donor.Address, donor.Port, donor.UUID
	}
	account, err := a.layout.readAccountOf(mysqld.CloneUser, mysqld.CloneUser)
	if err != nil {
		return err
	}
	if err := a.giveUpData(uuid); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.watchCopy(watching)
	}()
	err = a.local.Clone(ctx, a.source(donorHost(host, address), port, account), cmp.Or(assignment.CopyLimit, replication.DefaultCopyLimit))
	stop()
	<-done
	return err
}

// giveUpData records that this member's data does not count any more, and of which replica it becomes a copy; empty for none. A copy has
// other transactions than its member had, and must not give their GTIDs to new ones: with CLONE, a member keeps its server_uuid. A copy of
// a replica brings the settings of that one's channel.
func (a *Agent) giveUpData(copiedFrom string) error {
	if err := a.keepOrigin(replication.OriginFresh); err != nil {
		return err
	}
	if err := a.keepCopiedFrom(copiedFrom); err != nil {
		return err
	}
	a.mu.Lock()
	a.pointed = false
	a.mu.Unlock()
	return a.layout.dropServerUUID()
}

func (a *Agent) keepCopiedFrom(uuid string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept.CopiedFrom == uuid {
		return nil
	}
	kept := a.kept
	kept.CopiedFrom = uuid
	return a.storeState(kept)
}

// triedDonor reports whom the member has copied, or tried to copy.
func (a *Agent) triedDonor(donor *replication.Donor) {
	a.copies.used(donor)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.TriedDonors = a.copies.tried
}

// errBlocksDonor says why a member copies the primary: the donor may be the only replica that could take over.
var errBlocksDonor = errors.New("MySQL locks a member for DDL while it is copied (clone_block_ddl, always before 8.0.27), so it could not take over")

// checkDonor looks at the donor, and once more at the primary. An error says why the donor must not be copied.
func (a *Agent) checkDonor(ctx context.Context, local replication.Observed) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	donor := *local.Assignment.Donor
	if blocks, err := a.local.CopiesBlockDDL(ctx); err != nil || blocks {
		return cmp.Or(err, errBlocksDonor)
	}
	seen, err := a.observeDonor(ctx, donor)
	if err != nil {
		return err
	}
	after, err := a.observeSource(ctx, *local.Assignment)
	if err != nil {
		return fmt.Errorf("cannot reach the primary: %w", err)
	}
	if problem := donor.Problem(a.Status().Version, *local.Source, seen, after); problem != "" {
		return errors.New(problem)
	}
	return nil
}

func (a *Agent) observeDonor(ctx context.Context, donor replication.Donor) (replication.SeenDonor, error) {
	remote, err := a.observer(donor.Host, donor.Address, donor.Port)
	if err != nil {
		return replication.SeenDonor{}, err
	}
	defer remote.Close()
	seen, err := remote.ObserveDonor(ctx)
	return replication.SeenDonor(seen), err
}

// donorHost returns the host for CLONE, which takes no IPv6 address (manual, "Remote Cloning Prerequisites").
func donorHost(host, address string) string {
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.Is4() {
		return address
	}
	return host
}
