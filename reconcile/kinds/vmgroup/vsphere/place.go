//go:build !without_vcenter

package vsphere

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// site is where a group's folder is. It outlives sessions. The library's objects do not, because each holds the client that found it; they
// are created when they are used.
type site struct {
	datacenter, parent inventoryObject
	// until is how long to use this without another request: users may rename the objects.
	until time.Time
}

// siteLife is how long a place is assumed to be where it was found.
const siteLife = time.Minute

// inventoryObject is an object of the vCenter, and its path.
type inventoryObject struct {
	reference types.ManagedObjectReference
	path      string
}

func (s openSession) datacenter(at *site) *object.Datacenter {
	made := object.NewDatacenter(s.client, at.datacenter.reference)
	made.InventoryPath = at.datacenter.path
	return made
}

func (s openSession) parent(at *site) *object.Folder {
	made := object.NewFolder(s.client, at.parent.reference)
	made.InventoryPath = at.parent.path
	return made
}

// site finds the datacenter and the folder of a place. It remembers them for a while, or until an object there is gone.
func (s openSession) site(ctx context.Context, place vcenter.Place) (*site, error) {
	if known := s.cachedSite(place); known != nil {
		return known, nil
	}
	finder := find.NewFinder(s.client)
	var datacenter *object.Datacenter
	var err error
	if place.Datacenter == "" {
		datacenter, err = finder.DefaultDatacenter(ctx)
	} else {
		datacenter, err = finder.Datacenter(ctx, place.Datacenter)
	}
	if err != nil {
		return nil, named(err, "spec.datacenter", place.Datacenter)
	}
	finder.SetDatacenter(datacenter)
	under := path.Join(datacenter.InventoryPath, "vm", place.Folder)
	if strings.HasPrefix(place.Folder, "/") {
		under = place.Folder
	}
	parent, err := finder.Folder(ctx, under)
	if err != nil {
		return nil, named(err, "spec.folder", under)
	}
	found := &site{datacenter: inventoryObject{datacenter.Reference(), datacenter.InventoryPath}, parent: inventoryObject{parent.Reference(), parent.InventoryPath}, until: s.now().Add(siteLife)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[place] = found
	return found, nil
}

// cachedSite returns the site of a place that was found recently; nil if there is none.
func (s *session) cachedSite(place vcenter.Place) *site {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.places, func(_ vcenter.Place, one *site) bool { return one.until.Before(s.now()) })
	return s.places[place]
}

// forgetSites forgets all sites: an object in one of them is gone.
func (s *session) forgetSites() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.places)
}

// named adds the field of the group that caused an error of the finder.
func named(err error, field, value string) error {
	var missing *find.NotFoundError
	var several *find.MultipleFoundError
	switch {
	case errors.As(err, &missing):
		return &vcenter.Error{Reason: vcenter.NoPlace, Message: fmt.Sprintf("%s: there is no %q that the account can see: correct it, or VC_%s in the Secret vc-creds", field, value, keyOf(field))}
	case errors.As(err, &several):
		return &vcenter.Error{Reason: vcenter.NoPlace, Message: fmt.Sprintf("%s: there are several %q: give the full path", field, value)}
	}
	return err
}

// keyOf returns the end of the Secret's key for a field.
func keyOf(field string) string {
	name := strings.ToUpper(strings.TrimPrefix(field, "spec."))
	if name == "RESOURCEPOOL" {
		return "POOL"
	}
	return name
}

// source is what to clone machines from, and where to put them.
type source struct {
	template *object.VirtualMachine
	// identity is the template's identity.
	identity  string
	pool      types.ManagedObjectReference
	datastore *types.ManagedObjectReference
}

func (s openSession) source(ctx context.Context, at *site, order vcenter.Order) (source, error) {
	place := order.Group.Place
	finder := find.NewFinder(s.client).SetDatacenter(s.datacenter(at))
	var found source
	var err error
	if found.template, err = s.template(ctx, at, order.Group.Template); err != nil {
		return found, err
	}
	if found.identity, err = s.identity(ctx, found.template); err != nil {
		return found, err
	}
	if place.Datastore != "" {
		datastore, err := finder.Datastore(ctx, place.Datastore)
		if err != nil {
			return found, named(err, "spec.datastore", place.Datastore)
		}
		reference := datastore.Reference()
		found.datastore = &reference
	}
	if place.ResourcePool == "" {
		found.pool, err = poolOf(ctx, s.client, found.template)
		return found, err
	}
	pool, err := finder.ResourcePool(ctx, place.ResourcePool)
	if err != nil {
		return found, named(err, "spec.resourcePool", place.ResourcePool)
	}
	found.pool = pool.Reference()
	return found, nil
}

// poolOf returns the resource pool of a template. A machine that is marked as a template has none: its clones use the pool of its host or
// cluster.
func poolOf(ctx context.Context, client *vim25.Client, from *object.VirtualMachine) (types.ManagedObjectReference, error) {
	var machine mo.VirtualMachine
	var host mo.HostSystem
	var parent mo.ComputeResource
	collector := property.DefaultCollector(client)
	if err := collector.RetrieveOne(ctx, from.Reference(), []string{"resourcePool", "runtime.host"}, &machine); err != nil {
		return types.ManagedObjectReference{}, err
	}
	if machine.ResourcePool != nil {
		return *machine.ResourcePool, nil
	}
	unknown := &vcenter.Error{Reason: vcenter.NoPlace, Message: "spec.resourcePool: the account cannot see which host or cluster the template is on: name a resource pool, there or in VC_POOL of the Secret vc-creds"}
	if machine.Runtime.Host == nil {
		return types.ManagedObjectReference{}, unknown
	}
	if err := collector.RetrieveOne(ctx, *machine.Runtime.Host, []string{"parent"}, &host); err != nil {
		return types.ManagedObjectReference{}, err
	}
	if host.Parent == nil {
		return types.ManagedObjectReference{}, unknown
	}
	if err := collector.RetrieveOne(ctx, *host.Parent, []string{"resourcePool"}, &parent); err != nil {
		return types.ManagedObjectReference{}, err
	}
	if parent.ResourcePool == nil {
		return types.ManagedObjectReference{}, unknown
	}
	return *parent.ResourcePool, nil
}
