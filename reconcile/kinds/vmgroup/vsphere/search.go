//go:build !without_vcenter

package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"golang.org/x/sync/errgroup"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

const (
	// searchesAtOnce is how many searches for machines run at the same time in one vCenter, for all groups together.
	searchesAtOnce = 8
	// searchLife is how long the operator assumes that a machine of a group which is being deleted is gone: no user can move a machine out
	// of the group's folder if it is not there. So if a search takes longer than one call may, the next call continues it.
	searchLife = 5 * time.Minute
)

// elsewhere finds a machine of the group anywhere in the vCenter, and returns its path. It searches for the first machine, which every
// group with machines has; for a group that is being deleted, for all machines that it may have had. look calls it if it recognized none of
// them in the group's folder.
func (s openSession) elsewhere(ctx context.Context, group vcenter.Group) (string, error) {
	s.forgetSearches()
	found := make([]string, max(1, group.DeletingMachines))
	questions, ctx := errgroup.WithContext(ctx)
	questions.SetLimit(searchesAtOnce)
	for number := range found {
		slot := fmt.Sprintf("%s-%d", group.Folder, number)
		if group.DeletingMachines > 0 && s.searched(taskTarget{group.UID, slot}) {
			continue
		}
		questions.Go(func() (err error) {
			if found[number], err = s.search(ctx, group.UID, slot); err == nil && found[number] == "" {
				s.notFound(taskTarget{group.UID, slot})
			}
			return err
		})
	}
	if err := questions.Wait(); err != nil {
		return "", err
	}
	return cmp.Or(found...), nil
}

// search returns the path of the machine that was created for a slot, anywhere in the vCenter; empty if there is none.
func (s openSession) search(ctx context.Context, uid, slot string) (string, error) {
	select {
	case s.searches <- struct{}{}:
		defer func() { <-s.searches }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	found, err := object.NewSearchIndex(s.client).FindByUuid(ctx, nil, instanceOf(uid, slot), true, new(true))
	if err != nil || found == nil {
		return "", err
	}
	return find.InventoryPath(ctx, s.client, found.Reference())
}

// searched reports whether a recent search did not find a machine.
func (s *session) searched(about taskTarget) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missing[about].After(s.now())
}

func (s *session) notFound(about taskTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing[about] = s.now().Add(searchLife)
}

func (s *session) forgetSearches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.missing, func(_ taskTarget, until time.Time) bool { return !until.After(s.now()) })
}
