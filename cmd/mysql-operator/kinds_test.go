package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/mysql-operator/mysql-operator/reconcile/kinds/vmgroup"
	"github.com/mysql-operator/mysql-operator/schema"
)

// TestEveryKindIsComplete iterates over the table of kinds: each kind has a controller and permissions, and there is no other controller.
func TestEveryKindIsComplete(t *testing.T) {
	t.Parallel()
	for _, kind := range schema.Kinds() {
		made, err := controllers([]schema.Kind{kind}, self{image: "image"}, vmgroup.Settings{})
		if err != nil {
			t.Error(err)
			continue
		}
		if made[0].Kind != kind || made[0].New == nil {
			t.Errorf("the controller of %s is for %s", kind.Kind, made[0].Kind.Kind)
		}
		needed, err := permissions([]schema.Kind{kind}, grants{crds: crdsApply})
		if err != nil || len(needed.Objects) == 0 || len(needed.Definitions) == 0 {
			t.Errorf("%s: rights %+v, error %v", kind.Kind, needed, err)
		}
	}
	if extra := len(makers(vmgroup.Settings{})) - len(schema.Kinds()); extra != 0 {
		t.Errorf("%d controllers are for kinds that are not in the table", extra)
	}
}

// TestEveryKindIsDocumented searches docs for a page with each kind's sample.
func TestEveryKindIsDocumented(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	var written strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		written.Write(text)
	}
	for _, kind := range schema.Kinds() {
		if sample := "deploy/samples/" + strings.ToLower(kind.Kind) + ".yaml"; !strings.Contains(written.String(), sample) {
			t.Errorf("no page in docs shows %s, and so what a %s is for", sample, kind.Kind)
		}
	}
}

// TestVmGroupsAccountOfTheOperatorsNamespace: the operator may read it also if it has only Roles.
func TestVmGroupsAccountOfTheOperatorsNamespace(t *testing.T) {
	t.Parallel()
	kinds, err := schema.Select([]string{"VmGroup"})
	if err != nil {
		t.Fatal(err)
	}
	needed, err := permissions(kinds, grants{crds: crdsOff})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(needed.Own, func(one rbacv1.PolicyRule) bool { return slices.Equal(one.ResourceNames, []string{"vc-creds"}) }) {
		t.Errorf("in its own namespace it may %+v", needed.Own)
	}
}

// TestRightsOfMyCustomResource lists all permissions that the smallest kind needs in a namespace: to read, to write its status, and to
// write events.
func TestRightsOfMyCustomResource(t *testing.T) {
	t.Parallel()
	kinds, err := schema.Select([]string{"MyCustomResource"})
	if err != nil {
		t.Fatal(err)
	}
	needed, err := permissions(kinds, grants{crds: crdsApply})
	if err != nil {
		t.Fatal(err)
	}
	granted := []string{}
	for _, rule := range needed.Objects {
		granted = append(granted, fmt.Sprintf("%s of %s.%s", strings.Join(rule.Verbs, " "), strings.Join(rule.Resources, " "), strings.Join(rule.APIGroups, " ")))
	}
	want := []string{
		"get list watch of mycustomresources.poc.test.domain",
		"patch of mycustomresources/status.poc.test.domain",
		"create of events.events.k8s.io",
		"get list watch of pods.",
	}
	if diff := cmp.Diff(want, granted); diff != "" {
		t.Errorf("the permissions are (-want +got):\n%s", diff)
	}
}
