//go:build twoversions

package main

import (
	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/crds/conversion"
	"github.com/mysql-operator/mysql-operator/schema/definitions"
	"github.com/mysql-operator/mysql-operator/test/twoversions" //nolint:depguard // only with the tag, which no release has
)

// This is a release that never was: it serves ConfigMonitor in a second version, to show that conversion works.

func converters() (*conversion.Registry, error) { return twoversions.Registry() }

func amended(defined []crds.Definition) ([]crds.Definition, error) {
	for at, definition := range defined {
		if definition.Name() != twoversions.DefinitionName {
			continue
		}
		document, err := twoversions.YAML(definitions.Identity().VersionAnnotation())
		if err != nil {
			return nil, err
		}
		if defined[at], err = definitions.Identity().Parse(document, definition.Uses); err != nil {
			return nil, err
		}
	}
	return defined, nil
}
