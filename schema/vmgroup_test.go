package schema

import (
	"fmt"
	"testing"

	vmgroupv1alpha1 "github.com/mysql-operator/mysql-operator/schema/vmgroup/v1alpha1"
)

func vmGroup(spec string) string {
	return fmt.Sprintf("apiVersion: vm.codeconnect.vmworld.com/v1alpha1\nkind: VmGroup\nmetadata: {name: web}\nspec: {%s}\n", spec)
}

func TestVmGroupReadsBack(t *testing.T) {
	t.Parallel()
	stored, err := newAPIServer(t, "VmGroup").create(vmGroup("cpu: 2, memory: 1, replicas: 3, template: ubuntu"))
	if err != nil {
		t.Fatal(err)
	}
	typed := vmgroupv1alpha1.VmGroup{}
	if err := DecodeStrict(stored, &typed); err != nil {
		t.Fatal(err)
	}
	if want := (vmgroupv1alpha1.VmGroupSpec{CPU: 2, Memory: 1, Replicas: 3, Template: "ubuntu"}); typed.Spec != want {
		t.Errorf("read as %+v", typed.Spec)
	}
}

// TestVmGroupDocuments lists what is refused, and with which message. No message means that it is accepted.
func TestVmGroupDocuments(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t, "VmGroup")
	for story, test := range map[string]struct {
		spec string
		told []string
	}{
		"the least":              {"cpu: 1, memory: 1, replicas: 1, template: t", nil},
		"the most":               {"cpu: 4, memory: 8, replicas: 1000, template: a/b c/t", nil},
		"a place":                {"cpu: 1, memory: 1, replicas: 1, template: t, datacenter: DC0, folder: a/b, resourcePool: /DC0/host/C/Resources, datastore: d", nil},
		"no cpu":                 {"memory: 1, replicas: 1, template: t", []string{"spec.cpu: Required value"}},
		"no memory":              {"cpu: 1, replicas: 1, template: t", []string{"spec.memory: Required value"}},
		"no template":            {"cpu: 1, memory: 1, replicas: 1", []string{"spec.template: Required value"}},
		"no replicas":            {"cpu: 1, memory: 1, template: t", []string{"spec.replicas: Required value"}},
		"five CPUs":              {"cpu: 5, memory: 1, replicas: 1, template: t", []string{"spec.cpu", "less than or equal to 4"}},
		"no CPUs":                {"cpu: 0, memory: 1, replicas: 1, template: t", []string{"spec.cpu", "greater than or equal to 1"}},
		"nine GiB":               {"cpu: 1, memory: 9, replicas: 1, template: t", []string{"spec.memory", "less than or equal to 8"}},
		"no machines":            {"cpu: 1, memory: 1, replicas: 0, template: t", []string{"spec.replicas", "greater than or equal to 1"}},
		"a template like others": {"cpu: 1, memory: 1, replicas: 1, template: 'ubuntu-*'", []string{"spec.template must be one name or path"}},
		"brackets":               {"cpu: 1, memory: 1, replicas: 1, template: 't[1]'", []string{"spec.template must be one name or path"}},
		"a backslash":            {"cpu: 1, memory: 1, replicas: 1, template: t, folder: 'a\\b'", []string{"spec.folder must be one path"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			_, err := server.create(vmGroup(test.spec))
			wantRefusal(t, err, test.told...)
		})
	}
}
