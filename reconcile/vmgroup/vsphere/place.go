package vsphere

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/mysql-operator/mysql-operator/reconcile/vmgroup/vcenter"
)

// site is where a group's folder is.
type site struct {
	datacenter *object.Datacenter
	parent     *object.Folder
}

// site finds the datacenter and the folder of a place. What was found once is remembered until something there is gone.
func (s bound) site(ctx context.Context, place vcenter.Place) (*site, error) {
	s.mu.Lock()
	known, client := s.places[place], s.client
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	finder := find.NewFinder(client)
	var found site
	var err error
	if place.Datacenter == "" {
		found.datacenter, err = finder.DefaultDatacenter(ctx)
	} else {
		found.datacenter, err = finder.Datacenter(ctx, place.Datacenter)
	}
	if err != nil {
		return nil, named(err, "spec.datacenter", place.Datacenter)
	}
	finder.SetDatacenter(found.datacenter)
	under := path.Join(found.datacenter.InventoryPath, "vm", place.Folder)
	if strings.HasPrefix(place.Folder, "/") {
		under = place.Folder
	}
	if found.parent, err = finder.Folder(ctx, under); err != nil {
		return nil, named(err, "spec.folder", under)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[place] = &found
	return &found, nil
}

// misplaced forgets where places are: something that was there is gone.
func (s *session) misplaced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.places)
}

// named says which field of a group led to an error of the finder.
func named(err error, field, value string) error {
	var missing *find.NotFoundError
	var several *find.MultipleFoundError
	switch {
	case errors.As(err, &missing):
		return &vcenter.Error{Reason: vcenter.NoPlace, Message: fmt.Sprintf("%s: there is no %q that the account can see: correct it, or VC_%s in the Secret vc-creds", field, value, keyOf(field))}
	case errors.As(err, &several):
		return &vcenter.Error{Reason: vcenter.NoPlace, Message: fmt.Sprintf("%s: there are several %q: give the whole path", field, value)}
	}
	return err
}

// keyOf is the end of the Secret's key for a field.
func keyOf(field string) string {
	name := strings.ToUpper(strings.TrimPrefix(field, "spec."))
	if name == "RESOURCEPOOL" {
		return "POOL"
	}
	return name
}

// source is what machines are cloned from, and where to.
type source struct {
	template  *object.VirtualMachine
	pool      types.ManagedObjectReference
	datastore *types.ManagedObjectReference
}

func (s bound) source(ctx context.Context, at *site, order vcenter.Order) (source, error) {
	client, place := s.client, order.Group.Place
	finder := find.NewFinder(client).SetDatacenter(at.datacenter)
	var found source
	var err error
	if found.template, err = template(ctx, client, at, order.Template); err != nil {
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
		found.pool, err = poolOf(ctx, client, found.template)
		return found, err
	}
	pool, err := finder.ResourcePool(ctx, place.ResourcePool)
	if err != nil {
		return found, named(err, "spec.resourcePool", place.ResourcePool)
	}
	found.pool = pool.Reference()
	return found, nil
}

// template finds a virtual machine by its path, or by its name anywhere in the datacenter.
func template(ctx context.Context, client *vim25.Client, at *site, name string) (*object.VirtualMachine, error) {
	full := path.Join(at.datacenter.InventoryPath, "vm", name)
	if strings.HasPrefix(name, "/") {
		full = name
	}
	found, err := find.NewFinder(client).SetDatacenter(at.datacenter).VirtualMachine(ctx, full)
	if _, missing := errors.AsType[*find.NotFoundError](err); !missing {
		return found, err
	}
	wrong := func(format string) error {
		return &vcenter.Error{Reason: vcenter.NoTemplate, Message: fmt.Sprintf("spec.template: "+format, name, at.datacenter.Name())}
	}
	if strings.Contains(name, "/") {
		return nil, wrong("there is no virtual machine or template %q in datacenter %s that the account can see: make it, or correct the path")
	}
	all, err := view.NewManager(client).CreateContainerView(ctx, at.datacenter.Reference(), []string{kindMachine}, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Destroy(context.WithoutCancel(ctx)) }()
	matches, err := all.Find(ctx, []string{kindMachine}, property.Match{nameProperty: name})
	switch {
	case err != nil:
		return nil, err
	case len(matches) == 0:
		return nil, wrong("there is no virtual machine or template %q in datacenter %s that the account can see: make it, or correct the name")
	case len(matches) > 1:
		return nil, wrong("there are several virtual machines %q in datacenter %s: give the path below its folder of machines")
	}
	return object.NewVirtualMachine(client, matches[0]), nil
}

// poolOf is the pool a template is in; what is marked as a template is in none, and is made where it is registered.
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
