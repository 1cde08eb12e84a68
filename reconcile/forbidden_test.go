package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

func TestGrantRemedy(t *testing.T) {
	t.Parallel()
	forbidden := func(resource, cause string) error {
		return fmt.Errorf("get it: %w", apierrors.NewForbidden(apischema.GroupResource{Resource: resource}, "root", errors.New(cause)))
	}
	const binding = "kubectl create rolebinding mysql-operator-secrets --namespace=shop --clusterrole=mysql-operator-secrets --serviceaccount=ops:mysql-operator"
	for story, test := range map[string]struct {
		err   error
		binds bool
	}{
		"Secrets of a namespace": {forbidden("secrets", `User "system:serviceaccount:ops:mysql-operator" cannot get resource "secrets" in API group "" in the namespace "shop"`), true},
		"another resource":       {forbidden("services", `User "system:serviceaccount:ops:mysql-operator" cannot patch resource "services" in API group "" in the namespace "shop"`), false},
		"a quota":                {forbidden("secrets", "exceeded quota: few"), false},
		"a person":               {forbidden("secrets", `User "jane" cannot get resource "secrets" in API group "" in the namespace "shop"`), false},
		"a name that is a command": {
			forbidden("secrets", `User "system:serviceaccount:ops:x;reboot" cannot get resource "secrets" in API group "" in the namespace "shop"`), false,
		},
		"another error": {errors.New(`User "system:serviceaccount:ops:mysql-operator" cannot get resource "secrets" in API group "" in the namespace "shop"`), false},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			remedy := PermissionRemedy(test.err)
			if !strings.Contains(remedy, "mysql-operator manifests rbac prints the permissions") || strings.Contains(remedy, binding) != test.binds || strings.Contains(remedy, "reboot") {
				t.Errorf("the remedy is %q", remedy)
			}
		})
	}
}
