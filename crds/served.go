package crds

import (
	"cmp"
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// settle waits until the definition is established, served and in force. It returns false if somebody changed it meanwhile so that a new
// decision is due: an older operator may have created it between our look and our write.
func (i Installer) settle(ctx context.Context, definition Definition) (settled bool, err error) {
	name := definition.Name()
	var established *apiextensionsv1.CustomResourceDefinition
	err = poll(ctx, "definition "+name+" to be established", func(ctx context.Context) (bool, string, error) {
		object, err := i.API.Get(ctx, name)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", keepPassing("get", name, err)
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

// waitUntilServed looks at discovery, because an established definition may not be served yet, or only in its former form.
func (i Installer) waitUntilServed(ctx context.Context, definition Definition) error {
	at := definition.Resource()
	return poll(ctx, fmt.Sprintf("the API server to serve %s in %s", at.Resource, at.GroupVersion()), func(ctx context.Context) (bool, string, error) {
		list, err := i.API.Resources(ctx, at.Group, at.Version)
		if apierrors.IsNotFound(err) {
			return false, "nothing is served there", nil
		}
		if err != nil {
			return false, "", keepPassing("discover", definition.Name(), err)
		}
		missing := notServed(list, definition)
		return missing == "", missing + " is not listed", nil
	})
}

// waitUntilEnforced asks which schema is in force. Neither conditions nor discovery tell: both may be about the definition as it is now
// while requests are still validated and pruned by the one before. What is printed of an empty list tells, because the API server makes its
// columns, its validation and its pruning of one and the same reading of the definition (getOrCreateServingInfoFor in
// k8s.io/apiextensions-apiserver/pkg/apiserver), and the columns carry a mark of the schema they came with. Who may not list the custom
// resources cannot ask, and goes by discovery.
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
			return false, "", keepPassing("list", definition.Name(), err)
		case len(columns) == 0:
			return false, "nothing is printed", nil
		}
		last := columns[len(columns)-1].Description
		return last == want, fmt.Sprintf("the schema before it is (%q, not %q)", last, want), nil
	})
}
