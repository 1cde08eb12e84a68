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

// Apply makes a child of owner as desired: an unstructured object or an apply configuration that says what its owner wants said, and
// nothing else (an API type would also say its zero values). It is a server-side apply by ManagerChildren; the child gets owner as
// its controller. No request is sent if the API server's object says it all already, however much the API server has defaulted.
//
// A child that someone changed is healed, a field no longer desired is removed, and an orphan with the desired labels is adopted (see
// Claim). Any other object that exists and is not controlled by owner is left alone: *ForeignError. Secrets, what is not in the
// Controller's Watches, and what is watched with MetadataOnly are read live for the comparison. What a cache lacks is created without a
// look, once: the API server refuses that where something exists. A resourceVersion in desired is a precondition of changing the child:
// apierrors.IsConflict if it is another version by now; a child that is gone is made all the same.
func (c *Client) Apply(ctx context.Context, owner *unstructured.Unstructured, desired any) (Change, error) {
	child, resource, err := c.child(owner, desired)
	if err != nil {
		return Unchanged, err
	}
	seen := child.GetResourceVersion()
	child.SetResourceVersion("") // it is nothing that is wanted of the child
	mark(child)
	live, change, err := c.findOrCreate(ctx, owner, resource, child)
	if live == nil {
		return change, err
	}
	if err := Claim(owner, live, resource, child.GetLabels()); err != nil {
		return Unchanged, err
	}
	_, isDigested := digestIn(live, ManagerChildren)
	if isDigested && live.GetDeletionTimestamp() == nil {
		if metav1.IsControlledBy(live, owner) && c.fitsDigest(ctx, resource, live, child) {
			return Unchanged, nil
		}
		if live, err = c.Get(ctx, resource, child.GetNamespace(), child.GetName()); err != nil {
			if IsGone(err) {
				return c.create(ctx, resource, child)
			}
			return Unchanged, err
		}
		if err := Claim(owner, live, resource, child.GetLabels()); err != nil {
			return Unchanged, err
		}
	}
	return c.applyAdopting(ctx, owner, resource, live, application{manager: ManagerChildren, desired: child, seen: seen, isDigested: isDigested})
}

// IsApplied reports whether Apply would leave a child as it is. It asks the API server only where a cache does not show that.
func (c *Client) IsApplied(ctx context.Context, owner *unstructured.Unstructured, desired any) (bool, error) {
	child, resource, err := c.child(owner, desired)
	if err != nil {
		return false, err
	}
	child.SetResourceVersion("")
	mark(child)
	live, err := c.current(ctx, resource, child)
	if err == nil {
		if _, isDigested := live.Object[digestsField]; isDigested {
			if metav1.IsControlledBy(live, owner) && c.fitsDigest(ctx, resource, live, child) {
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
	return metav1.IsControlledBy(live, owner) && c.whatDiffers(ctx, appliedTo{manager: what.manager, child: nameOf(resource, live)}, live, what) == "", nil
}

// findOrCreate returns the object that exists under a child's name. If there is none, it makes the child and returns nil.
func (c *Client) findOrCreate(ctx context.Context, owner *unstructured.Unstructured, resource apischema.GroupVersionResource, child *unstructured.Unstructured) (*unstructured.Unstructured, Change, error) {
	var refused error
	if c.isProbablyNew(ctx, resource, child) {
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
		c.journal.noteTaken(ctx, nameOf(resource, child), false)
		change, err := c.create(ctx, resource, child)
		return nil, change, err
	case IsUnavailable(err):
		return nil, Unchanged, err
	case err != nil:
		return nil, Unchanged, errors.Join(refused, err)
	case refused == nil:
		return live, Unchanged, nil
	}
	c.journal.noteTaken(ctx, nameOf(resource, child), true)
	c.journal.wrote(ctx, resource, live) // a cache that was to show it is behind
	if !apierrors.IsConflict(refused) && metav1.IsControlledBy(live, owner) {
		return nil, Unchanged, refused // it may have taken effect all the same: the next pass sees what there is
	}
	return live, Unchanged, nil
}

// applyAdopting applies to a child that Claim allows owner.
func (c *Client) applyAdopting(ctx context.Context, owner *unstructured.Unstructured, resource apischema.GroupVersionResource, live *unstructured.Unstructured, what application) (Change, error) {
	if !metav1.IsControlledBy(live, owner) {
		if err := c.mayAdopt(ctx, owner); err != nil {
			return Unchanged, err
		}
	}
	return c.applyTo(ctx, resource, live, what)
}

// ApplyFields sets fields of an existing object that belongs to someone else, such as labels of a Pod that a StatefulSet made, as a
// field manager of their own, which must be named ManagerChildren plus a suffix ("mysql-operator-role"). Fields the manager set
// earlier and does not name now are removed. The object is never created: the API server's NotFound error is returned.
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

// application is what to apply, and as whom.
type application struct {
	manager string
	desired *unstructured.Unstructured
	// seen is the resourceVersion that the object must still have; empty for any.
	seen string
	// isDigested says that the cache has only a digest of the object.
	isDigested bool
}

// applyTo applies to an object that exists.
func (c *Client) applyTo(ctx context.Context, resource apischema.GroupVersionResource, live *unstructured.Unstructured, what application) (Change, error) {
	if live.GetDeletionTimestamp() != nil {
		return Awaiting, nil
	}
	canonicalise(what.desired)
	child := appliedTo{manager: what.manager, child: nameOf(resource, live)}
	where := c.whatDiffers(ctx, child, live, what)
	if where == "" {
		c.fits(ctx, child, live, what)
		return Unchanged, nil
	}

	wanted := wantedDigest(what.desired)
	// With the UID the apply can neither create the object anew nor hit another that took its place.
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
	c.journal.remember(ctx, child, appliedAs(written.GetUID(), wanted, digestOf(written.Object, owned)))
	c.journal.wrote(ctx, resource, written)
	if written.GetResourceVersion() == live.GetResourceVersion() {
		return Unchanged, nil
	}
	logChange(ctx, Updated, written, "field", where)
	return Updated, nil
}

// fits remembers that an object fits though its digest in the cache is another than that of what is desired.
func (c *Client) fits(ctx context.Context, child appliedTo, live *unstructured.Unstructured, what application) {
	if owned, ok := ownedBy(live, what.manager); ok && what.isDigested {
		c.journal.remember(ctx, child, appliedAs(live.GetUID(), wantedDigest(what.desired), digestOf(live.Object, owned)))
	}
}

// whatDiffers returns the path of a field that an apply would change; empty if none.
func (c *Client) whatDiffers(ctx context.Context, child appliedTo, live *unstructured.Unstructured, what application) string {
	owned, ok := ownedBy(live, what.manager)
	if !ok {
		return "."
	}
	where := difference(what.desired, live, owned)
	if where == "" {
		return ""
	}
	// The API server may store something else than was applied and have it owned all the same: defaults within an atomic field, the
	// work of an admission plugin. Applying it again would bring nothing.
	last, ok := c.journal.lastApplied(ctx, child)
	if ok && last == appliedAs(live.GetUID(), wantedDigest(what.desired), digestOf(live.Object, owned)) {
		return ""
	}
	return where
}

// fitsDigest says whether an apply would change nothing in an object of which the cache has a digest.
func (c *Client) fitsDigest(ctx context.Context, resource apischema.GroupVersionResource, live, desired *unstructured.Unstructured) bool {
	canonicalise(desired)
	present, _ := digestIn(live, ManagerChildren)
	wanted := wantedDigest(desired)
	if present == wanted {
		return true
	}
	last, ok := c.journal.lastApplied(ctx, appliedTo{manager: ManagerChildren, child: nameOf(resource, live)})
	return ok && present != "" && last == appliedAs(live.GetUID(), wanted, present)
}

// neverVersion is a resourceVersion that no object has: etcd counts the versions of all objects together, from a first one that is empty.
const neverVersion = "1"

// create applies an object that does not exist as far as is known. A resourceVersion in an apply is a precondition of changing an object,
// and not of creating one: whatever exists all the same, the API server answers with a conflict and leaves it as it is.
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
	c.journal.remember(ctx, appliedTo{manager: ManagerChildren, child: nameOf(resource, created)}, appliedAs(created.GetUID(), wanted, digestOf(created.Object, owned)))
	c.journal.wrote(ctx, resource, created)
	logChange(ctx, Created, created)
	return Created, nil
}

// isProbablyNew reports whether a cache that is to be trusted lacks the desired object, and no pass has met it. It may exist all the same:
// it may lack the label the watch selects by.
func (c *Client) isProbablyNew(ctx context.Context, resource apischema.GroupVersionResource, desired *unstructured.Unstructured) bool {
	cached, ok := c.trusted(ctx, resource)
	return ok && versionOf(cached.item(desired.GetNamespace(), desired.GetName())) == "" && !c.journal.isTaken(ctx, nameOf(resource, desired))
}

func nameOf(resource apischema.GroupVersionResource, child *unstructured.Unstructured) childName {
	return childName{resource, child.GetNamespace(), child.GetName()}
}

// trusted returns the cache of a resource if it shows whole objects and, as far as is known, this object's own writes.
func (c *Client) trusted(ctx context.Context, resource apischema.GroupVersionResource) (*view, bool) {
	cached, ok := c.caches[resource]
	current, _ := passFrom(ctx)
	return cached, ok && !cached.metadataOnly && !current.live
}

// current returns the object that exists under the desired one's name: from the cache if it is there and the cache is to be trusted,
// else from the API server. A cache that lacks it proves nothing: the object may lack the label the watch selects by. One of metadata
// cannot tell whether anything would change.
func (c *Client) current(ctx context.Context, resource apischema.GroupVersionResource, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if cached, ok := c.trusted(ctx, resource); ok {
		if object, found := cached.Get(desired.GetNamespace(), desired.GetName()); found {
			return object, nil
		}
	}
	return c.Get(ctx, resource, desired.GetNamespace(), desired.GetName())
}

// foreignness returns what is wrong with taking object for owner's child; nil if it is.
func foreignness(owner, object *unstructured.Unstructured, resource apischema.GroupVersionResource) error {
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
