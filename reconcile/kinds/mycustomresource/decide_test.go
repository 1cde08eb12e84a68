package mycustomresource

import (
	"testing"

	v1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	anywhere, inShop := v1.MyCustomResourceSpec{Name: "joe"}, v1.MyCustomResourceSpec{Name: "joe", Namespace: "shop"}
	for story, test := range map[string]struct {
		spec v1.MyCustomResourceSpec
		seen observed
		want decision
	}{
		"the Pod exists": {
			anywhere, observed{exists: true, watched: true},
			decision{healthy: true, reason: reasonPodFound, message: `a Pod named "joe" exists`},
		},
		"it exists where it is looked for": {
			inShop, observed{exists: true, watched: true},
			decision{healthy: true, reason: reasonPodFound, message: `a Pod named "joe" exists in namespace "shop"`},
		},
		"it exists in a namespace that the operator watches": {
			anywhere, observed{exists: true},
			decision{healthy: true, reason: reasonPodFound, message: `a Pod named "joe" exists`},
		},
		"there is none": {
			anywhere, observed{watched: true},
			decision{reason: reasonPodNotFound, message: `no Pod named "joe" exists`},
		},
		"there is none where it is looked for": {
			inShop, observed{watched: true},
			decision{reason: reasonPodNotFound, message: `no Pod named "joe" exists in namespace "shop"`},
		},
		"there is none in the namespaces that the operator watches": {
			anywhere, observed{},
			decision{reason: reasonPodNotFound, message: `no Pod named "joe" exists in the namespaces that the operator works in (--namespaces)`},
		},
		"the operator cannot know": {
			inShop, observed{},
			decision{stalled: true, reason: reasonNamespaceNotWatched, message: `spec.namespace: the operator does not work in namespace "shop" and cannot tell whether a Pod named "joe" exists there: add the namespace to the operator's --namespaces, or name another`},
		},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			same(t, decide(test.spec, test.seen), test.want)
		})
	}
}
