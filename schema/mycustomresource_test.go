package schema

import (
	"fmt"
	"strings"
	"testing"

	pocv1 "github.com/mysql-operator/mysql-operator/schema/poc/v1"
)

// seedCustomResource is the first resource of the founding walk-through. The API server must always accept it.
const seedCustomResource = `
apiVersion: poc.test.domain/v1
kind: MyCustomResource
metadata:
  name: my-custom-resource-01
spec:
  name: funny-joe
`

func TestSeedCustomResourceApplies(t *testing.T) {
	t.Parallel()
	stored, err := newAPIServer(t, "MyCustomResource").create(seedCustomResource)
	if err != nil {
		t.Fatalf("the seed's resource is refused: %v", err)
	}
	typed := pocv1.MyCustomResource{}
	if err := DecodeStrict(stored, &typed); err != nil {
		t.Fatal(err)
	}
	if typed.Spec != (pocv1.MyCustomResourceSpec{Name: "funny-joe"}) {
		t.Errorf("read as %+v", typed.Spec)
	}
}

// TestCustomResourceDocuments lists what is refused, and with which message. No message means that it is accepted.
func TestCustomResourceDocuments(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "MyCustomResource")
	long := strings.Repeat("a", 253)
	for story, test := range map[string]struct {
		spec string
		told []string
	}{
		"a name":                           {"name: funny-joe", nil},
		"the longest name":                 {"name: " + long, nil},
		"a name with dots":                 {"name: joe.v1.2", nil},
		"a name in one namespace":          {"name: joe, namespace: shop", nil},
		"no name":                          {"namespace: shop", []string{"spec.name: Required value"}},
		"an empty name":                    {"name: ''", []string{"spec.name"}},
		"a name that is too long":          {"name: a" + long, []string{"spec.name: Too long"}},
		"a name that no Pod can have":      {"name: Funny_Joe", []string{"spec.name must be the name of a Pod"}},
		"a pattern":                        {"name: joe-*", []string{"spec.name must be the name of a Pod"}},
		"an empty namespace":               {"name: joe, namespace: ''", []string{"spec.namespace"}},
		"a namespace that cannot be":       {"name: joe, namespace: a.b", []string{"spec.namespace must be the name of a namespace", "leave it out to look in all namespaces"}},
		"a namespace that begins with a -": {"name: joe, namespace: -a", []string{"spec.namespace must be the name of a namespace"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(fmt.Sprintf("apiVersion: poc.test.domain/v1\nkind: MyCustomResource\nmetadata: {name: m}\nspec: {%s}\n", test.spec))
			wantRefusal(t, err, test.told...)
		})
	}
}
