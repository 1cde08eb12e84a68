package crds

import (
	"cmp"
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// waitUntilReady waits until the definition is established, served and in force. It returns false if another client changed it meanwhile so
// that the installer must decide again. For example, an older operator may have created it between our read and our write.
func (i Installer) waitUntilReady(ctx context.Context, definition Definition) (settled bool, err error) {
	name := definition.Name()
	var established *apiextensionsv1.CustomResourceDefinition
	err = poll(ctx, "definition "+name+" to be established", func(ctx context.Context) (bool, string, error) {
		object, err := i.API.Get(ctx, name)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", explainPermanent("get", name, err)
		}
		if Decide(i.situation(object, definition), definition).Decision().Action != Keep {
			return true, "", nil
		}
		ready, seen, err := readiness(object)
		if ready {
			established = object
		}
		return ready, seen, err
	})
	if err != nil || established == nil {
		return false, err
	}
	if err := i.waitUntilServed(ctx, definition); err != nil {
		return false, err
	}
	return true, i.waitUntilEnforced(ctx, definition, established)
}

// waitUntilServed polls discovery, because an established definition may not be served yet, or only in its former form.
func (i Installer) waitUntilServed(ctx context.Context, definition Definition) error {
	at := definition.Resource()
	return poll(ctx, fmt.Sprintf("the API server to serve %s in %s", at.Resource, at.GroupVersion()), func(ctx context.Context) (bool, string, error) {
		list, err := i.API.Resources(ctx, at.Group, at.Version)
		if apierrors.IsNotFound(err) {
			return false, "it serves nothing of this group and version", nil
		}
		if err != nil {
			return false, "", explainPermanent("discover", definition.Name(), err)
		}
		missing := notServed(list, definition)
		return missing == "", missing + " is not listed", nil
	})
}

// waitUntilEnforced waits until the schema is in force. Neither conditions nor discovery show this: both may be about the current
// definition while the API server still validates and prunes requests with the former one. The printed columns of an empty list show it.
// The API server builds columns, validation and pruning from one reading of the definition (getOrCreateServingInfoFor in
// k8s.io/apiextensions-apiserver/pkg/apiserver), and the columns carry a mark of their schema. Without the permission to list the custom
// resources, discovery must suffice.
func (i Installer) waitUntilEnforced(ctx context.Context, definition Definition, established *apiextensionsv1.CustomResourceDefinition) error {
	version := findVersion(established, definition.Uses)
	if len(version.AdditionalPrinterColumns) == 0 {
		return nil
	}
	want := version.AdditionalPrinterColumns[len(version.AdditionalPrinterColumns)-1].Description
	namespace := ""
	if definition.Namespaced() {
		namespace = cmp.Or(i.Namespace, "default")
	}
	return poll(ctx, "the API server to put the schema of definition "+definition.Name()+" in force", func(ctx context.Context) (bool, string, error) {
		columns, err := i.API.Columns(ctx, definition.Resource(), namespace)
		switch {
		case apierrors.IsForbidden(err):
			return true, "", nil
		case apierrors.IsNotFound(err):
			return false, "it is not served yet", nil
		case err != nil:
			return false, "", explainPermanent("list", definition.Name(), err)
		case len(columns) == 0:
			return false, "the list has no columns", nil
		}
		last := columns[len(columns)-1].Description
		return last == want, fmt.Sprintf("the former schema is still in force (%q, not %q)", last, want), nil
	})
}
