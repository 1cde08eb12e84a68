package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Apply makes a child of the pass's object as desired. desired is an unstructured object or an apply configuration with only the fields
// that the owner wants to set. An API type would also set its zero values. Apply is a server-side apply by ManagerChildren, and makes the
// pass's object the controller of the child. It sends no request if the API server's object already has all desired values, even if the API
// server defaulted other fields.
//
// Apply reverts changes that others made, removes fields that are no longer desired, and adopts an orphan with the desired labels (see
// CheckOwnership). It leaves any other existing object that the pass's object does not control as it is, and returns *ForeignError. To
// compare, it reads from the API server: Secrets, resources not in the Controller's Watches, and resources watched with MetadataOnly. If a
// cache does not have the object, Apply tries once to create it without reading first; the API server refuses that if the object exists. A
// resourceVersion in desired is a precondition for changing the child: if the child has another version by then, the error satisfies
// apierrors.IsConflict. If the child is gone, Apply creates it anyway.
func (c *Client) Apply(ctx context.Context, desired any) (Change, error) {
	child, err := c.child(desired)
	if err != nil {
		return Unchanged, err
	}
	resource := c.names.resourceFor(child.GroupVersionKind())
	seen := child.GetResourceVersion()
	child.SetResourceVersion("") // not a desired value of the child
	mark(child)
	live, change, err := c.findOrCreate(ctx, resource, child)
	if live == nil {
		return change, err
	}
	if err := c.CheckOwnership(live, resource, child.GetLabels()); err != nil {
		return Unchanged, err
	}
	_, isDigested := digestIn(live, ManagerChildren)
	if isDigested && live.GetDeletionTimestamp() == nil {
		if metav1.IsControlledBy(live, c.owner) && c.fitsDigest(resource, live, child) {
			return Unchanged, nil
		}
		if live, err = c.Get(ctx, resource, child.GetNamespace(), child.GetName()); err != nil {
			if IsGone(err) {
				return c.create(ctx, resource, child)
			}
			return Unchanged, err
		}
		if err := c.CheckOwnership(live, resource, child.GetLabels()); err != nil {
			return Unchanged, err
		}
	}
	return c.applyAdopting(ctx, resource, live, application{manager: ManagerChildren, desired: child, seen: seen, isDigested: isDigested})
}

// IsApplied reports whether Apply would leave a child as it is. It asks the API server only if a cache does not show that.
func (c *Client) IsApplied(ctx context.Context, desired any) (bool, error) {
	child, err := c.child(desired)
	if err != nil {
		return false, err
	}
	resource := c.names.resourceFor(child.GroupVersionKind())
	child.SetResourceVersion("")
	mark(child)
	live, err := c.current(ctx, resource, child)
	if err == nil {
		if _, isDigested := live.Object[digestsField]; isDigested {
			if metav1.IsControlledBy(live, c.owner) && c.fitsDigest(resource, live, child) {
				return true, nil
			}
			live, err = c.Get(ctx, resource, child.GetNamespace(), child.GetName())
		}
	}
	if IsGone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	canonicalise(child)
	what := application{manager: ManagerChildren, desired: child}
	return metav1.IsControlledBy(live, c.owner) && c.whatDiffers(appliedTo{manager: what.manager, child: nameOf(resource, live)}, live, what) == "", nil
}

// findOrCreate returns the object that exists under a child's name. If there is none, it creates the child and returns nil.
func (c *Client) findOrCreate(ctx context.Context, resource apischema.GroupVersionResource, child *unstructured.Unstructured) (*unstructured.Unstructured, Change, error) {
	var refused error
	if c.isProbablyNew(resource, child) {
		var change Change
		if change, refused = c.create(ctx, resource, child); refused == nil || IsUnavailable(refused) {
			return nil, change, refused
		}
	}
	live, err := c.current(ctx, resource, child)
	switch {
	case IsGone(err) && refused != nil:
		return nil, Unchanged, refused
	case IsGone(err):
		c.journal.noteTaken(c.pass, nameOf(resource, child), false)
		change, err := c.create(ctx, resource, child)
		return nil, change, err
	case IsUnavailable(err):
		return nil, Unchanged, err
	case err != nil:
		return nil, Unchanged, errors.Join(refused, err)
	case refused == nil:
		return live, Unchanged, nil
	}
	c.journal.noteTaken(c.pass, nameOf(resource, child), true)
	c.journal.wrote(c.pass, resource, live) // the cache that should show the object is behind
	if !apierrors.IsConflict(refused) && metav1.IsControlledBy(live, c.owner) {
		return nil, Unchanged, refused // the create may have succeeded anyway: the next pass observes what exists
	}
	return live, Unchanged, nil
}

// applyAdopting applies to a child that CheckOwnership allows the pass's object to take.
func (c *Client) applyAdopting(ctx context.Context, resource apischema.GroupVersionResource, live *unstructured.Unstructured, what application) (Change, error) {
	if !metav1.IsControlledBy(live, c.owner) {
		if err := c.mayAdopt(ctx); err != nil {
			return Unchanged, err
		}
	}
	return c.applyTo(ctx, resource, live, what)
}

// ApplyFields sets fields of an existing object that another controller owns, such as labels of a Pod that a StatefulSet made. It uses a
// field manager of its own, which must be named ManagerChildren plus a suffix ("mysql-operator-role"). Fields that the manager set earlier
// and that desired does not contain are removed. ApplyFields never creates the object: it returns the API server's NotFound error.
func (c *Client) ApplyFields(ctx context.Context, manager string, desired any) (Change, error) {
	if !isOwnManager(manager) || manager == ManagerChildren || manager == ManagerStatus {
		return Unchanged, fmt.Errorf("apply as field manager %q: the name must be %s- and a suffix, and not %s", manager, ManagerChildren, ManagerStatus)
	}
	fields, err := toUnstructured(desired)
	if err != nil {
		return Unchanged, err
	}
	resource := c.names.resourceFor(fields.GroupVersionKind())
	live, err := c.current(ctx, resource, fields)
	if err != nil {
		return Unchanged, err
	}
	return c.applyTo(ctx, resource, live, application{manager: manager, desired: fields})
}

// application is what to apply, and with which field manager.
type application struct {
	manager string
	desired *unstructured.Unstructured
	// seen is the resourceVersion that the object must still have; empty for any.
	seen string
	// isDigested is true if the cache has only a digest of the object.
	isDigested bool
}

// applyTo applies to an object that exists.
func (c *Client) applyTo(ctx context.Context, resource apischema.GroupVersionResource, live *unstructured.Unstructured, what application) (Change, error) {
	if live.GetDeletionTimestamp() != nil {
		return Awaiting, nil
	}
	canonicalise(what.desired)
	child := appliedTo{manager: what.manager, child: nameOf(resource, live)}
	where := c.whatDiffers(child, live, what)
	if where == "" {
		c.fits(child, live, what)
		return Unchanged, nil
	}

	wanted := wantedDigest(what.desired)
	// With the UID, the apply can neither create the object again nor change another object of the same name.
	what.desired.SetUID(live.GetUID())
	if what.seen != "" {
		what.desired.SetResourceVersion(what.seen)
	}
	options := metav1.ApplyOptions{FieldManager: what.manager, Force: true}
	written, err := c.resource(resource, live).Apply(ctx, live.GetName(), what.desired, options)
	if err != nil {
		return Unchanged, fmt.Errorf("apply %s %s/%s: %w", resource.GroupResource(), live.GetNamespace(), live.GetName(), served(err))
	}
	owned, _ := ownedBy(written, what.manager)
	c.journal.remember(c.pass, child, appliedAs(written.GetUID(), wanted, digestOf(written.Object, owned)))
	c.journal.wrote(c.pass, resource, written)
	if written.GetResourceVersion() == live.GetResourceVersion() {
		return Unchanged, nil
	}
	logChange(ctx, Updated, written, "field", where)
	return Updated, nil
}

// fits remembers that an object is as desired although its digest in the cache differs from the digest of the desired object.
func (c *Client) fits(child appliedTo, live *unstructured.Unstructured, what application) {
	if owned, ok := ownedBy(live, what.manager); ok && what.isDigested {
		c.journal.remember(c.pass, child, appliedAs(live.GetUID(), wantedDigest(what.desired), digestOf(live.Object, owned)))
	}
}

// whatDiffers returns the path of a field that an apply would change; empty if there is none.
func (c *Client) whatDiffers(child appliedTo, live *unstructured.Unstructured, what application) string {
	owned, ok := ownedBy(live, what.manager)
	if !ok {
		return "."
	}
	where := difference(what.desired, live, owned)
	if where == "" {
		return ""
	}
	// The API server may store a value that differs from the applied one, and still list the manager as its owner. Defaults within an
	// atomic field and admission plugins do this. Applying again would change nothing.
	last, ok := c.journal.lastApplied(c.pass, child)
	if ok && last == appliedAs(live.GetUID(), wantedDigest(what.desired), digestOf(live.Object, owned)) {
		return ""
	}
	return where
}

// fitsDigest reports whether an apply would change nothing in an object of which the cache has a digest.
func (c *Client) fitsDigest(resource apischema.GroupVersionResource, live, desired *unstructured.Unstructured) bool {
	canonicalise(desired)
	present, _ := digestIn(live, ManagerChildren)
	wanted := wantedDigest(desired)
	if present == wanted {
		return true
	}
	last, ok := c.journal.lastApplied(c.pass, appliedTo{manager: ManagerChildren, child: nameOf(resource, live)})
	return ok && present != "" && last == appliedAs(live.GetUID(), wanted, present)
}

// neverVersion is a resourceVersion that no object has: etcd counts the versions of all objects together, and its first version is empty.
const neverVersion = "1"

// create applies an object that, as far as the operator knows, does not exist. A resourceVersion in an apply is a precondition only for
// changing an object, not for creating one. So if the object exists after all, the API server answers with a conflict and leaves it as it
// is.
func (c *Client) create(ctx context.Context, resource apischema.GroupVersionResource, child *unstructured.Unstructured) (Change, error) {
	canonicalise(child)
	wanted := wantedDigest(child)
	child.SetResourceVersion(neverVersion)
	defer child.SetResourceVersion("")
	created, err := c.resource(resource, child).Apply(ctx, child.GetName(), child, metav1.ApplyOptions{FieldManager: ManagerChildren})
	if err != nil {
		return Unchanged, fmt.Errorf("create %s %s/%s: %w", resource.GroupResource(), child.GetNamespace(), child.GetName(), served(err))
	}
	owned, _ := ownedBy(created, ManagerChildren)
	c.journal.remember(c.pass, appliedTo{manager: ManagerChildren, child: nameOf(resource, created)}, appliedAs(created.GetUID(), wanted, digestOf(created.Object, owned)))
	c.journal.wrote(c.pass, resource, created)
	logChange(ctx, Created, created)
	return Created, nil
}

// isProbablyNew reports whether a trusted cache does not have the desired object, and no pass found it on the API server. The object may
// exist anyway, without the label that the watch selects by.
func (c *Client) isProbablyNew(resource apischema.GroupVersionResource, desired *unstructured.Unstructured) bool {
	cached, ok := c.trusted(resource)
	return ok && versionOf(cached.item(desired.GetNamespace(), desired.GetName())) == "" && !c.journal.isTaken(c.pass, nameOf(resource, desired))
}

func nameOf(resource apischema.GroupVersionResource, child *unstructured.Unstructured) childName {
	return childName{resource, child.GetNamespace(), child.GetName()}
}

// trusted returns the cache of a resource if it has whole objects and, as far as is known, shows the pass's object's own writes.
func (c *Client) trusted(resource apischema.GroupVersionResource) (*view, bool) {
	cached, ok := c.caches[resource]
	return cached, ok && !cached.metadataOnly && !c.pass.live
}

// current returns the object that exists under the desired one's name: from a trusted cache if it is there, else from the API server. An
// object that is not in the cache may still exist, without the label that the watch selects by. A cache of metadata cannot show whether an
// apply would change anything.
func (c *Client) current(ctx context.Context, resource apischema.GroupVersionResource, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if cached, ok := c.trusted(resource); ok {
		if object, found := cached.Get(desired.GetNamespace(), desired.GetName()); found {
			return object, nil
		}
	}
	return c.Get(ctx, resource, desired.GetNamespace(), desired.GetName())
}

// checkController returns nil if owner controls object, else the reason why object is not owner's child.
func checkController(owner, object *unstructured.Unstructured, resource apischema.GroupVersionResource) error {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller != nil && controller.UID == owner.GetUID() {
		return nil
	}
	foreign := &ForeignError{Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
	if controller != nil {
		foreign.Controller = controller.Kind + "/" + controller.Name
		kind := apischema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind)
		foreign.Predecessor = controller.Name == owner.GetName() && kind.GroupKind() == owner.GroupVersionKind().GroupKind()
	}
	return foreign
}

func logChange(ctx context.Context, change Change, object *unstructured.Unstructured, more ...any) {
	values := append([]any{"op", string(change), "child", object.GetKind() + "/" + object.GetName()}, more...)
	logr.FromContextOrDiscard(ctx).Info("child "+string(change), values...)
}
