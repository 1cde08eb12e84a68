package main

import (
	"testing"

	"github.com/mysql-operator/mysql-operator/schema"
)

// TestEveryKindIsComplete walks the table of kinds: each has a controller, the rights to work, and nothing else has one.
func TestEveryKindIsComplete(t *testing.T) {
	t.Parallel()
	for _, kind := range schema.Kinds() {
		made, err := controllers([]schema.Kind{kind}, "image")
		if err != nil {
			t.Error(err)
			continue
		}
		if made[0].Kind != kind || made[0].New == nil {
			t.Errorf("the controller of %s is for %s", kind.Kind, made[0].Kind.Kind)
		}
		needed, err := rights([]schema.Kind{kind}, crdsApply)
		if err != nil || len(needed.Objects) == 0 || len(needed.Definitions) == 0 {
			t.Errorf("%s: rights %+v, error %v", kind.Kind, needed, err)
		}
	}
	if extra := len(makers()) - len(schema.Kinds()); extra != 0 {
		t.Errorf("%d controllers are for kinds that are not in the table", extra)
	}
}
