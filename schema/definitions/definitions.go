// Package definitions loads this operator's definitions: the embedded YAML of package schema, with the operator's marks.
package definitions

import (
	"fmt"

	"github.com/mysql-operator/mysql-operator/crds"
	"github.com/mysql-operator/mysql-operator/schema"
)

// Identity returns the identity that marks this operator's definitions.
func Identity() crds.Identity {
	return crds.Identity{Owner: "mysql-operator", Domain: schema.MySQLGroup}
}

// Load returns the definitions of the kinds, in their order. An error means that the program was built from a wrong file.
func Load(kinds []schema.Kind) ([]crds.Definition, error) {
	loaded := make([]crds.Definition, 0, len(kinds))
	for _, kind := range kinds {
		document, err := schema.Definition(kind)
		if err != nil {
			return nil, err
		}
		definition, err := Identity().Parse(document, kind.Version)
		if err != nil {
			return nil, fmt.Errorf("load the definition of %s: %w", kind.Kind, err)
		}
		if names := definition.Object().Spec.Names; definition.Name() != kind.DefinitionName() || names.Kind != kind.Kind {
			return nil, fmt.Errorf("load the definition of %s: it defines %s %s, but the table of kinds has %s %s", kind.Kind, definition.Name(), names.Kind, kind.DefinitionName(), kind.Kind)
		}
		loaded = append(loaded, definition)
	}
	return loaded, nil
}
