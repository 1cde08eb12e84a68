//go:build !without_vcenter

package vsphere

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup/vcenter"
)

// identityLife is how long a name is assumed to mean the same template.
const identityLife = time.Minute

// templateName is a template's name as a user wrote it.
type templateName struct {
	place vcenter.Place
	name  string
}

// identified has the identity of a spelling's template; an empty identity means that there is no such template.
type identified struct {
	identity string
	until    time.Time
}

// respell gives machines that were cloned from the group's template its current spelling. It looks for templates only while a machine has
// another spelling.
func (s openSession) respell(ctx context.Context, at *site, group vcenter.Group, machines []vcenter.Machine) error {
	for i, one := range machines {
		if one.Owner != group.UID || one.Creating || one.Template == group.Template {
			continue
		}
		wanted, err := s.identityOf(ctx, at, templateName{group.Place, group.Template}, false)
		if err != nil || wanted == "" {
			return err
		}
		source := one.Source
		if source == "" { // the mark has only the spelling
			if source, err = s.identityOf(ctx, at, templateName{group.Place, one.Template}, true); err != nil {
				return err
			}
		}
		if source == wanted {
			machines[i].Template = group.Template
		}
	}
	return nil
}

// identityOf returns the identity of the template that a spelling means; empty if there is none. lasting remembers for a while also that
// there is none.
func (s openSession) identityOf(ctx context.Context, at *site, of templateName, lasting bool) (string, error) {
	s.mu.Lock()
	known, is := s.templates[of]
	s.mu.Unlock()
	if is && known.until.After(s.now()) {
		return known.identity, nil
	}
	identity := ""
	found, err := s.template(ctx, at, of.name)
	if err == nil {
		identity, err = s.identity(ctx, found)
	}
	if err != nil {
		if meant := errorFor(err, s.account).Reason; meant != vcenter.NoTemplate && meant != vcenter.NoPlace {
			return "", err
		}
	}
	if identity != "" || lasting {
		s.identified(of, identity)
	}
	return identity, nil
}

func (s *session) identified(of templateName, identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one, known := range s.templates {
		if known.until.Before(s.now()) {
			delete(s.templates, one)
		}
	}
	s.templates[of] = identified{identity, s.now().Add(identityLife)}
}

// identity returns what identifies a template whatever its name and place are (vSphere Web Services API,
// VirtualMachineConfigInfo.instanceUuid).
func (s openSession) identity(ctx context.Context, template *object.VirtualMachine) (string, error) {
	var seen mo.VirtualMachine
	if err := property.DefaultCollector(s.client).RetrieveOne(ctx, template.Reference(), []string{"config.instanceUuid"}, &seen); err != nil {
		return "", err
	}
	if seen.Config == nil {
		return template.Reference().Value, nil
	}
	return cmp.Or(seen.Config.InstanceUuid, template.Reference().Value), nil
}

// template finds a virtual machine by its path, or by its name anywhere in the datacenter.
func (s openSession) template(ctx context.Context, at *site, name string) (*object.VirtualMachine, error) {
	datacenter := s.datacenter(at)
	full := path.Join(datacenter.InventoryPath, "vm", name)
	if strings.HasPrefix(name, "/") {
		full = name
	}
	found, err := find.NewFinder(s.client).SetDatacenter(datacenter).VirtualMachine(ctx, full)
	if _, missing := errors.AsType[*find.NotFoundError](err); !missing {
		return found, err
	}
	wrong := func(format string) error {
		return &vcenter.Error{Reason: vcenter.NoTemplate, Message: fmt.Sprintf("spec.template: "+format, name, datacenter.Name())}
	}
	if strings.Contains(name, "/") {
		return nil, wrong("there is no virtual machine or template %q in datacenter %s that the account can see: create it, or correct the path")
	}
	all, err := view.NewManager(s.client).CreateContainerView(ctx, datacenter.Reference(), []string{kindMachine}, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Destroy(context.WithoutCancel(ctx)) }()
	matches, err := all.Find(ctx, []string{kindMachine}, property.Match{nameProperty: name})
	switch {
	case err != nil:
		return nil, err
	case len(matches) == 0:
		return nil, wrong("there is no virtual machine or template %q in datacenter %s that the account can see: create it, or correct the name")
	case len(matches) > 1:
		return nil, wrong("there are several virtual machines %q in datacenter %s: give the path below the datacenter's folder of virtual machines")
	}
	return object.NewVirtualMachine(s.client, matches[0]), nil
}
